#pragma once

#include <string>
#include <vector>

#include "compiler/codegen/llvm.h"
#include "runtime/llvm_jit.h"
#include "tests/llvm/memory.h"

namespace sinter::test {

/// Vector widths of this CPU that code is generated for, widest first.
[[nodiscard]] std::vector<int> host_widths();

/// How far a float result may be from the reference, in units in its last place.
struct Tolerance {
  double ulps = 0;
  bool signed_zero = true;  ///< -0 and +0 differ
};

/// Compiles the kernel and runs it over the params in two ranges that meet off every boundary.
void run_compiled(const kernel::Kernel& kernel, std::vector<Buffer>& params, int vector_bits);

/// Runs the kernel compiled and through the reference on copies of the params. Empty when they agree, else what
/// differs, with the generated text.
[[nodiscard]] std::string compare_with_reference(const kernel::Kernel& kernel, const std::vector<Buffer>& params,
                                                 int vector_bits, Tolerance tolerance = {});

/// Buffers for every param with room behind the last element, which no kernel may touch. Filled with zeros.
[[nodiscard]] std::vector<Buffer> make_params(const kernel::Kernel& kernel);

}  // namespace sinter::test
