#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/codegen/llvm_writer.h"

namespace sinter::codegen {

/// Name of SLEEF's vector function for a C name, on full registers of `vector_bits`: "Sleef_expf16_u10avx512f". These
/// are the variants ATen calls. Empty where SLEEF has none.
[[nodiscard]] std::string sleef_name(std::string_view c_name, ir::DType dtype, int vector_bits);

/// Which vector functions a kernel uses.
enum class VectorMath : uint8_t {
  as_eager,  ///< those ATen calls for the same op, where they give the same bits; our own for the rest
  inlined,   ///< our own: reductions are summed in another order than ATen's anyway, and its softmax has its own exp
};

/// True where Sinter has a vector function of its own, which a kernel inlines. Such functions are as accurate as
/// SLEEF's (1 ulp) and several times faster than a call, which spills all registers.
[[nodiscard]] bool is_inlined(std::string_view c_name, ir::DType dtype, int vector_bits, VectorMath math);
/// Defines that function in the module and answers its name.
[[nodiscard]] std::string define_inline(LlvmWriter& out, std::string_view c_name, int64_t lanes, int vector_bits);

}  // namespace sinter::codegen
