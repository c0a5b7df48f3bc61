#pragma once

#include <string>
#include <string_view>

#include "compiler/codegen/llvm_writer.h"

namespace sinter::codegen {

/// Name of SLEEF's vector function for a C name, on full registers of `vector_bits`: "Sleef_expf16_u10avx512f". These
/// are the variants ATen calls. Empty where SLEEF has none.
[[nodiscard]] std::string sleef_name(std::string_view c_name, ir::DType dtype, int vector_bits);

/// Where Sinter has a vector function of its own, which a kernel inlines: defines it in the module and answers its
/// name. Empty otherwise. Such functions are as accurate as SLEEF's (1 ulp) and several times faster than a call,
/// which spills all registers.
[[nodiscard]] std::string define_inline(LlvmWriter& out, std::string_view c_name, ir::DType dtype, int64_t lanes,
                                        int vector_bits);

}  // namespace sinter::codegen
