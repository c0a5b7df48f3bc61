#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "dice.h"
#include "program.h"
#include "themes.h"

namespace sinter::test::fuzz {

/// Elements of a tensor that results are compared of.
inline constexpr int64_t most_elements = 4096;
/// Of programs with long tensors: above the 32768 elements from which ATen, and Sinter's kernels, use more threads.
inline constexpr int64_t most_elements_of_long = 1 << 18;

[[nodiscard]] std::vector<int64_t> draw_sizes(Dice& dice, const Themes& themes);
/// An input or a closed-over tensor, and how it lies in memory.
[[nodiscard]] Source draw_source(Dice& dice, const Themes& themes, Name name, at::ScalarType dtype,
                                 std::vector<int64_t> sizes);
/// A module that takes this input; nothing where the one that was drawn does not.
[[nodiscard]] std::optional<ModuleSpec> draw_module(Dice& dice, const Themes& themes, const at::Tensor& input);

}  // namespace sinter::test::fuzz
