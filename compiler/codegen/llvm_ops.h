#pragma once

#include <string>
#include <vector>

#include "compiler/codegen/llvm_math.h"
#include "compiler/codegen/llvm_writer.h"
#include "compiler/ir/op.h"

namespace sinter::codegen {

/// A native op on register vectors of `dtype`, from the template in its row:
///
///   instructions over {r} {t} {mask} {0}..   one a line; {r}.a, {r}.b are temporaries
///   "intrinsic:floor"                        the LLVM intrinsic, overloaded on {t}
///   "call:exp"                               a vector function: Sinter's own, SLEEF's, else libm lane by lane
///   "scalar:fmod"                            libm lane by lane
///
/// Throws InternalError when the row has no form for the dtype.
[[nodiscard]] std::string emit_op(LlvmWriter& out, const ir::OpRow& row, const std::vector<std::string>& operands,
                                  ir::DType dtype, int64_t lanes, int vector_bits,
                                  VectorMath math = VectorMath::as_eager);

/// True when the op's form for the dtype is a call, which costs far more than an instruction.
[[nodiscard]] bool is_call(const ir::OpRow& row, ir::DType dtype);
/// True when it is one and the function is not inlined.
[[nodiscard]] bool stays_call(const ir::OpRow& row, ir::DType dtype, int vector_bits, VectorMath math);

}  // namespace sinter::codegen
