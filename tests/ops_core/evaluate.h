#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/ir/expression.h"

namespace sinter::ir::test {

/// One element of a tensor.
struct Element {
  RefValue value;
  DType dtype = DType::f32;
};
/// An ATen arg: an element stands for a tensor; numbers, text and None for themselves.
using Operand = std::variant<Element, None, bool, int64_t, double, std::string>;

/// A call of a row of the table on single elements, through expand and the reference functions, f32 rounded after
/// every op. Dtypes follow from the row's type rule. Nothing where the row does not take the args.
[[nodiscard]] std::optional<Element> evaluate(std::string_view row, const std::vector<Operand>& args);

/// Tensor elements of one dtype.
[[nodiscard]] Element f64(double value);
[[nodiscard]] Element f32(double value);
[[nodiscard]] Element f16(double value);
[[nodiscard]] Element i32(int64_t value);
[[nodiscard]] Element u8(int64_t value);
[[nodiscard]] Element b8(bool value);

/// The element's value as a double; fails the test for nothing.
[[nodiscard]] double number(const std::optional<Element>& element);

}  // namespace sinter::ir::test
