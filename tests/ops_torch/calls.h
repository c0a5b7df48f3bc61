#pragma once

#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/op.h"
#include "operands.h"

namespace sinter::test {

/// A call of one overload of an ATen op, its tensor arguments taken from a set of operands.
struct Call {
  c10::OperatorHandle op;
  const ir::OpRow* row = nullptr;
  std::vector<std::variant<Operand, c10::IValue>> args;  ///< by schema position
  bool in_place = false;                                 ///< writes to a copy of its first argument
  bool first_choice = true;                              ///< the first of several calls of this overload
  std::string label;                                     ///< "aten::pow.Tensor_Scalar(first, 2)"

  /// Calls the op through the dispatcher, boxed.
  [[nodiscard]] at::Tensor operator()(const std::vector<at::Tensor>& operands) const;
  [[nodiscard]] std::string name() const;       ///< "aten::pow.Tensor_Scalar"
  [[nodiscard]] std::string base_name() const;  ///< "aten::pow", of in-place forms too
};

/// Calls of every overload of every ATen name of the op table, with a few choices of the numbers and strings each.
[[nodiscard]] std::vector<Call> all_calls();

}  // namespace sinter::test
