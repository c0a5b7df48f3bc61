#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compiler/kernel/lower.h"
#include "tests/emulator/emulator.h"
#include "tests/llvm/memory.h"

namespace sinter::test {

/// How far a float result may be from the reference, in units in its last place.
struct Tolerance {
  double ulps = 0;
  bool signed_zero = true;  ///< -0 and +0 differ
};

[[nodiscard]] bool agree(const ir::RefValue& got, const ir::RefValue& want, ir::DType dtype, Tolerance tolerance);
[[nodiscard]] std::string print(const ir::RefValue& value);

/// A kernel to run both ways.
struct Case {
  std::string name;
  kernel::Kernel kernel;
  Tolerance tolerance;
  ir::Domain domain = ir::Domain::all_reals;
  bool special = true;  ///< infinities, NaN and extremes among the values
};

/// A device small enough that the kernels of tests use full vectors, several a thread.
[[nodiscard]] DeviceInfo test_device();

/// Exactly the elements the kernel touches, so that the sanitizer sees the first byte beyond; filled from `seed`.
[[nodiscard]] std::vector<Buffer> filled_params(const Case& test, uint64_t seed);

/// Launches one emulated kernel, whose text is `source`, on the buffers. They lie at addresses that are as aligned as
/// the source asks for, and no more, so that a source that asks for too little aborts.
void run_emulated(const Emulator& emulator, size_t index, const kernel::Kernel& kernel, const KernelSource& source,
                  std::vector<Buffer>& params);

/// Compiles all cases together, with sizes in the text and as parameters, runs each and the reference on equal buffers.
/// What differs, one line and the kernel's text each; empty when all agree.
[[nodiscard]] std::string compare_all(std::span<const Case> cases);

}  // namespace sinter::test
