#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/codegen/row_passes.h"
#include "compiler/kernel/kernel.h"

namespace sinter::codegen {

/// The type of one element in a kernel's text, in memory and in registers: "float", "f16", "signed char", "bool".
[[nodiscard]] std::string_view cuda_type(ir::DType dtype);

/// A number as a literal of the dtype, safe to stand as an operand: "0.5f", "(-1)", "5ll".
[[nodiscard]] std::string cuda_literal(const ir::Scalar& value, ir::DType dtype);

/// A conversion of an operand, as ATen converts.
[[nodiscard]] std::string cuda_cast(const std::string& operand, ir::DType from, ir::DType to);

/// The dtype a computed slot computes in, `{t}` of its text: that of its operands; for `cast` what it converts to.
[[nodiscard]] ir::DType computation_dtype(const kernel::Kernel& kernel, kernel::Slot slot);

/// What computes one instruction: a text with `{0}`.. for operands and `{t}` for the computation's type.
struct Expression {
  std::string text;
  std::vector<kernel::Slot> operands;
};

/// The expression of every slot; empty text for loads (whose operand is their guard), reductions, immediates (they are
/// literals), questions where a point lies, and for what no store needs.
/// Where only half-precision stores depend on a value, cheaper helpers of half accuracy are chosen.
[[nodiscard]] std::vector<Expression> cuda_expressions(const kernel::Kernel& kernel);

/// The operands of every expression.
[[nodiscard]] Operands operands_of(const std::vector<Expression>& expressions);

/// Fills operands and type into a text.
[[nodiscard]] std::string render(std::string_view text, std::string_view type,
                                 const std::vector<std::string>& operands);

}  // namespace sinter::codegen
