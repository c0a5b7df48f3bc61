#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "compiler/plan.h"

namespace sinter::test {

/// Arguments of a launch, in the order of the kernel's parameters: pointers, and host scalars by value.
using EmulatedArg = std::variant<void*, double, int64_t>;

/// Generated CUDA text compiled as plain C++ with the address sanitizer, and run on the CPU: block by block, thread by
/// thread. An access at an address that is no multiple of its size, which a GPU would refuse, aborts. The program that
/// loads it must be built with -fsanitize=address.
class Emulator {
 public:
  /// Compiles all kernels; names need not differ. Throws std::runtime_error with the compiler's output and the path
  /// of the kept source when one does not compile.
  explicit Emulator(std::span<const KernelSource> kernels);
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;
  /// Removes the sources, which a run that the sanitizer ends leaves behind.
  ~Emulator();

  /// Runs kernels[index] over its whole grid.
  void run(size_t index, std::span<const EmulatedArg> args) const;

 private:
  using Launch = void (*)(void** args, unsigned grid, unsigned block);
  struct Entry {
    Launch launch = nullptr;
    unsigned grid = 1;
    unsigned block = 1;
  };
  std::vector<Entry> entries_;
  std::filesystem::path directory_;
};

}  // namespace sinter::test
