#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "rows.h"

/// What an operator may be applied to.
namespace sinter::test::fuzz {

/// Whether a tensor fits a letter of a row's pattern, given the operands before it.
[[nodiscard]] bool fits(char letter, const at::Tensor& tensor, const std::vector<at::Tensor>& before);

/// Whether a row keeps an index within the first tensor.
[[nodiscard]] bool is_bounded_index(const Row& row);

/// Whether numbers are small enough to be compared, integers far enough from an overflow, and none so small that a
/// rounding is no share of it: a product of many may be 0 in another order.
[[nodiscard]] bool has_moderate_numbers(const at::Tensor& tensor);

}  // namespace sinter::test::fuzz
