// What threads of a block do together: barriers, shuffles, votes and atomics, as CUDA names them. The last argument of
// each is the line of the call.
#pragma once

#include <string.h>

#include <cstdint>
#include <type_traits>

#include "machine.h"

namespace sinter::test {

/// Null while threads run one after the other.
inline thread_local Machine* machine = nullptr;

/// What a shuffle gives: small integers become int, as with CUDA's overloads.
template <class T>
using Shuffled = std::conditional_t<(sizeof(T) < 4), int, T>;

template <class T>
Shuffled<T> shuffle(WarpCall call, T value) {
  static_assert(std::is_arithmetic_v<T>, "CUDA shuffles numbers");
  Shuffled<T> wide = value;
  call.bytes = sizeof wide;
  memcpy(&call.value, &wide, sizeof wide);
  const uint64_t bits = machine->warp(call);
  memcpy(&wide, &bits, sizeof wide);
  return wide;
}

inline unsigned vote(WarpOp op, unsigned mask, int predicate, int line) {
  WarpCall call;
  call.op = op;
  call.mask = mask;
  call.value = predicate != 0;
  call.line = line;
  return static_cast<unsigned>(machine->warp(call));
}

inline WarpCall shuffle_call(WarpOp op, unsigned mask, unsigned operand, int width, int line) {
  WarpCall call;
  call.op = op;
  call.mask = mask;
  call.operand = operand;
  call.width = static_cast<unsigned>(width);
  call.line = line;
  return call;
}

/// Replaces *at by change(*at), with nothing in between. The access is reported as atomic, not as a read and a write.
template <class T, class Change>
__attribute__((noinline, no_sanitize("thread"))) T atomically(T* at, Change change) {
  if (machine != nullptr) machine->touch(at, sizeof(T), Access::atomic);
  const T old = *at;
  *at = change(old);
  return old;
}

}  // namespace sinter::test

inline void __syncthreads(int line = __builtin_LINE()) { sinter::test::machine->sync_threads(line); }
inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) {
  sinter::test::vote(sinter::test::WarpOp::sync, mask, 0, line);
}

template <class T>
auto __shfl_sync(unsigned mask, T value, int lane, int width = 32, int line = __builtin_LINE()) {
  using namespace sinter::test;
  return shuffle(shuffle_call(WarpOp::shuffle, mask, static_cast<unsigned>(lane), width, line), value);
}
template <class T>
auto __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32, int line = __builtin_LINE()) {
  using namespace sinter::test;
  return shuffle(shuffle_call(WarpOp::shuffle_up, mask, distance, width, line), value);
}
template <class T>
auto __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32, int line = __builtin_LINE()) {
  using namespace sinter::test;
  return shuffle(shuffle_call(WarpOp::shuffle_down, mask, distance, width, line), value);
}
template <class T>
auto __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, int line = __builtin_LINE()) {
  using namespace sinter::test;
  return shuffle(shuffle_call(WarpOp::shuffle_xor, mask, static_cast<unsigned>(lanes), width, line), value);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return sinter::test::vote(sinter::test::WarpOp::ballot, mask, predicate, line);
}
inline int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return static_cast<int>(sinter::test::vote(sinter::test::WarpOp::any, mask, predicate, line));
}
inline int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return static_cast<int>(sinter::test::vote(sinter::test::WarpOp::all, mask, predicate, line));
}

template <class T>
T atomicAdd(T* at, std::common_type_t<T> value) {
  return sinter::test::atomically(at, [value](T old) { return static_cast<T>(old + value); });
}
inline unsigned atomicInc(unsigned* at, unsigned last) {
  return sinter::test::atomically(at, [last](unsigned old) { return old >= last ? 0u : old + 1; });
}

/// Threads take turns only where they wait, so that memory is always as they left it.
inline void __threadfence() {}
inline void __threadfence_block() {}
