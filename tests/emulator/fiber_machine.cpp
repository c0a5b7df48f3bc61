#include "tests/emulator/fiber_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace sinter::test {
namespace {

constexpr std::align_val_t shared_alignment{16};
constexpr int unlikely_byte = 0xff;  // of NaN in every float type

unsigned count(const Index3& size) { return size.x * size.y * size.z; }

Index3 index_of(unsigned number, const Index3& size) {
  return {number % size.x, number / size.x % size.y, number / size.x / size.y};
}

bool names(unsigned mask, unsigned lane) { return (mask >> lane & 1U) != 0; }

}  // namespace

void FiberMachine::Free::operator()(void* memory) const { ::operator delete(memory, shared_alignment); }

FiberMachine::FiberMachine(const Geometry& geometry, size_t dynamic_shared_bytes, Order order)
    : geometry_(geometry),
      order_(order),
      threads_(count(geometry.block)),
      dynamic_shared_(::operator new(dynamic_shared_bytes, shared_alignment)),
      dynamic_shared_bytes_(dynamic_shared_bytes),
      shared_(count(geometry.block)) {}

void FiberMachine::run(const KernelCall& call) {
  if (call.traced) {
    shared_.watch("static shared memory", call.shared, call.shared_bytes);
    shared_.watch("dynamic shared memory", dynamic_shared_.get(), dynamic_shared_bytes_);
  }
  for (const unsigned block : turns(count(geometry_.grid))) {
    *call.block = index_of(block, geometry_.grid);
    try {
      run_block(call);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(fmt::format("block {}: {}", block, error.what()));
    }
  }
}

void FiberMachine::run_block(const KernelCall& call) {
  if (call.shared_bytes != 0) std::memset(call.shared, unlikely_byte, call.shared_bytes);
  std::memset(dynamic_shared_.get(), unlikely_byte, dynamic_shared_bytes_);
  shared_.begin_block();
  for (Thread& thread : threads_) {
    thread.fiber.start(call.run, call.context);
    thread.state = State::runs;
    thread.line = 0;
  }
  for (;;) {
    run_threads(call);
    if (std::ranges::all_of(threads_, [](const Thread& thread) { return thread.state == State::exited; })) return;
    const bool warps_go_on = release_warps();
    const bool block_goes_on = release_block();
    if (!failure_.empty()) throw std::runtime_error(failure_);
    if (!warps_go_on && !block_goes_on) throw std::runtime_error(deadlock());
  }
}

/// Runs every thread that can until it waits or exits.
void FiberMachine::run_threads(const KernelCall& call) {
  for (const unsigned number : turns(static_cast<unsigned>(threads_.size()))) {
    Thread& thread = threads_[number];
    if (thread.state != State::runs) continue;
    running_ = number;
    *call.thread = index_of(number, geometry_.block);
    thread.fiber.resume();
    if (!failure_.empty()) throw std::runtime_error(failure_);
    if (thread.fiber.done()) thread.state = State::exited;
  }
}

void FiberMachine::sync_threads(int line) {
  threads_[running_].line = line;
  wait(State::waits_for_block);
}

uint64_t FiberMachine::warp(const WarpCall& call) {
  const std::string fault = fault_of(call, running_ % lanes_per_warp);
  if (!fault.empty()) fail(fmt::format("thread {}: {}", running_, fault));
  Thread& thread = threads_[running_];
  thread.call = call;
  wait(State::waits_for_warp);
  return thread.result;
}

void FiberMachine::touch(const void* address, size_t bytes, Access access) {
  if (!shared_.watches(address)) return;
  std::string fault = shared_.access(running_, address, bytes, access);
  if (fault.empty()) return;
  const int line = threads_[running_].line;
  if (line != 0) fault += fmt::format(" (thread {} last passed the barrier of line {})", running_, line);
  fail(std::move(fault));
}

void FiberMachine::wait(State state) {
  threads_[running_].state = state;
  Fiber::suspend();
}

/// Leaves the thread where it stands.
void FiberMachine::fail(std::string what) {
  failure_ = std::move(what);
  Fiber::suspend();
}

bool FiberMachine::release_block() {
  const Thread* first = nullptr;
  for (const Thread& thread : threads_) {
    if (thread.state == State::exited) continue;
    if (thread.state != State::waits_for_block) return false;
    if (first == nullptr) first = &thread;
    if (thread.line == first->line) continue;
    failure_ = fmt::format("thread {} waits at __syncthreads of line {}, thread {} at that of line {}",
                           first - threads_.data(), first->line, &thread - threads_.data(), thread.line);
    return false;
  }
  shared_.sync_block();
  for (Thread& thread : threads_) {
    if (thread.state == State::waits_for_block) thread.state = State::runs;
  }
  return true;
}

bool FiberMachine::release_warps() {
  bool released = false;
  for (unsigned thread = 0; thread < threads_.size(); ++thread) {
    if (threads_[thread].state != State::waits_for_warp || !complete(thread)) continue;
    release_warp(thread / lanes_per_warp * lanes_per_warp, threads_[thread].call.mask);
    released = true;
  }
  return released;
}

/// Whether all lanes that a waiting thread's mask names have made the same call.
bool FiberMachine::complete(unsigned thread) const {
  const WarpCall& call = threads_[thread].call;
  const unsigned first = thread / lanes_per_warp * lanes_per_warp;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    if (!names(call.mask, lane)) continue;
    if (first + lane >= threads_.size()) return false;
    const Thread& other = threads_[first + lane];
    if (other.state != State::waits_for_warp || !same_operation(call, other.call)) return false;
  }
  return true;
}

void FiberMachine::release_warp(unsigned first, unsigned mask) {
  WarpCalls calls;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    if (names(mask, lane)) calls[lane] = threads_[first + lane].call;
  }
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    if (!names(mask, lane)) continue;
    threads_[first + lane].result = result_of(calls, lane);
    threads_[first + lane].state = State::runs;
  }
  const unsigned some = static_cast<unsigned>(__builtin_ctz(mask));
  if (calls[some]->op == WarpOp::sync) shared_.sync_warp(first, mask);
}

/// Names one thread that waits for a lane in vain. There is one: barriers alone would have gone on.
std::string FiberMachine::deadlock() const {
  for (unsigned thread = 0; thread < threads_.size(); ++thread) {
    const WarpCall& call = threads_[thread].call;
    if (threads_[thread].state != State::waits_for_warp) continue;
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
      const unsigned other = thread / lanes_per_warp * lanes_per_warp + lane;
      const bool there = other < threads_.size() && threads_[other].state == State::waits_for_warp &&
                         same_operation(call, threads_[other].call);
      if (!names(call.mask, lane) || there) continue;
      return fmt::format("deadlock: thread {} waits at {} for thread {}, which {}", thread, describe(call), other,
                         what_it_does(other));
    }
  }
  return "deadlock";
}

std::string FiberMachine::what_it_does(unsigned thread) const {
  if (thread >= threads_.size()) return fmt::format("a block of {} threads does not have", threads_.size());
  const Thread& other = threads_[thread];
  if (other.state == State::exited) return "has exited";
  if (other.state == State::waits_for_block) return fmt::format("waits at __syncthreads (line {})", other.line);
  return fmt::format("waits at {}", describe(other.call));
}

std::vector<unsigned> FiberMachine::turns(unsigned count) {
  std::vector<unsigned> all(count);
  std::iota(all.begin(), all.end(), 0U);
  if (order_ == Order::backward) std::ranges::reverse(all);
  if (order_ == Order::random) std::ranges::shuffle(all, random_);
  return all;
}

}  // namespace sinter::test
