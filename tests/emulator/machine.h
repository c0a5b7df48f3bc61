// What a kernel compiled as C++ and the program that runs it know of each other. Both include it. Calls are virtual, so
// that a library of kernels needs no symbol of the program.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sinter::test {

struct Index3 {
  unsigned x = 0, y = 0, z = 0;
};

/// How many blocks a launch has, and how many threads each.
struct Geometry {
  Index3 grid{1, 1, 1};
  Index3 block{1, 1, 1};
};

enum class WarpOp : unsigned char { sync, shuffle, shuffle_up, shuffle_down, shuffle_xor, ballot, any, all };

/// One lane's part in an operation of its warp.
struct WarpCall {
  WarpOp op = WarpOp::sync;
  unsigned mask = 0;
  uint64_t value = 0;    ///< bits to shuffle, or the predicate
  unsigned bytes = 0;    ///< of the value
  unsigned operand = 0;  ///< lane, distance or lane mask of a shuffle
  unsigned width = 32;
  int line = 0;  ///< in the kernel's text
};

enum class Access : unsigned char { read, write, atomic };

/// A kernel with its arguments, ready to run.
struct KernelCall {
  void (*run)(void* context) = nullptr;  ///< one thread: the one that the indices name
  void* context = nullptr;
  Index3* thread = nullptr;  ///< threadIdx and blockIdx, where the kernel reads them
  Index3* block = nullptr;
  bool traced = false;     ///< calls touch() for every access; else for atomics only
  void* shared = nullptr;  ///< its static shared arrays, where it is traced
  size_t shared_bytes = 0;
};

/// Runs the threads of blocks that wait for each other, and does for them what they do together.
class Machine {
 public:
  virtual void run(const KernelCall& call) = 0;

  /// For the thread that runs. They return when all threads that must take part have called.
  virtual void sync_threads(int line) = 0;
  virtual uint64_t warp(const WarpCall& call) = 0;

  /// Every access of the thread that runs, before it happens.
  virtual void touch(const void* address, size_t bytes, Access access) = 0;

  [[nodiscard]] virtual void* dynamic_shared() = 0;

 protected:
  ~Machine() = default;
};

/// Runs a kernel's whole grid: by the machine, or one thread after the other where it is null.
using KernelLaunch = void (*)(void** args, const Geometry& geometry, Machine* machine);

}  // namespace sinter::test
