#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "compiler/plan.h"
#include "tests/emulator/machine.h"

namespace sinter::test {

/// Whether threads of the kernel wait for each other or share memory. Others may run one after the other.
[[nodiscard]] bool cooperates(const KernelSource& kernel);

/// How kernels are compiled as C++: so that the address sanitizer sees every access outside of memory, or so that the
/// machine is told of every access.
enum class Build { checked, traced };

/// Compiles kernels[numbers[0]], kernels[numbers[1]], ... in the directory, which holds cuda_on_cpu.h, and opens them
/// for good. Throws std::runtime_error with the compiler's output where one does not compile.
[[nodiscard]] std::vector<KernelLaunch> build_kernels(const std::filesystem::path& directory,
                                                      std::span<const KernelSource> kernels,
                                                      std::span<const size_t> numbers, Build build);

}  // namespace sinter::test
