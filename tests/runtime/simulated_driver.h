#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "runtime/cuda/driver.h"

/// A CUDA device in host memory, for tests of what is launched, copied, recorded and replayed. Work runs at once, in
/// the thread that gives it, and what is recorded runs when its graph is launched. So it shows stale addresses and
/// numbers, and no missing wait. What CUDA refuses is refused: handles that are gone, work without a context, unknown
/// memory, and in a recording what invalidates one.
namespace sinter::runtime::simulated {

/// A launch as its kernel sees it. Every parameter has 8 bytes, as those of generated kernels have.
struct Launched {
  std::span<const uint64_t> params;
  std::array<unsigned, 3> grid{};
  std::array<unsigned, 3> block{};

  template <class T>
  [[nodiscard]] T* pointer(size_t param) const {
    return reinterpret_cast<T*>(params[param]);
  }
  [[nodiscard]] double number(size_t param) const { return std::bit_cast<double>(params[param]); }
};

/// A kernel: how many parameters it has, and what it does, over its whole grid. It must not call the driver.
struct Kernel {
  size_t params = 0;
  std::function<void(const Launched&)> run;
};

/// What the device did since the process began.
struct Counts {
  int64_t launches = 0;  ///< of kernels by the host, those into a recording included
  int64_t copies = 0;    ///< on the device, the same
  int64_t graph_launches = 0;
  int64_t instantiations = 0;
  int64_t params_set = 0;  ///< of nodes of instantiated graphs
  int64_t graphs = 0;      ///< alive: recorded and instantiated ones
};
[[nodiscard]] Counts counts();

/// Every module has a kernel of this name from now on.
void define(const std::string& name, Kernel kernel);

/// The simulated driver: one device, of compute capability 9.0. Thread-safe.
[[nodiscard]] const Driver& driver();

}  // namespace sinter::runtime::simulated
