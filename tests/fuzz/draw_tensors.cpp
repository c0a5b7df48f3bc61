#include "draw_tensors.h"

#include <c10/core/ScalarType.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <array>
#include <utility>

namespace sinter::test::fuzz {
namespace {

/// More elements than one thread takes, and no multiple of a vector or of a thread's share; or one row of them.
std::vector<int64_t> long_sizes(Dice& dice) {
  const auto rows = dice.among<int64_t>({3, 7, 129, 257});
  const auto columns = dice.among<int64_t>({70001, 98317}) / rows;
  return std::vector<std::vector<int64_t>>{
      {rows * columns + 1}, {rows, columns}, {1, columns}, {rows, columns, 1}}[dice.weighted({3, 5, 1, 1})];
}

}  // namespace

std::vector<int64_t> draw_sizes(Dice& dice, const Themes& themes) {
  static constexpr std::initializer_list<int64_t> extents = {1, 2, 2, 3, 3, 4, 4, 5, 8, 17};
  if (themes.is_long) return long_sizes(dice);
  std::vector<int64_t> result(themes.spatial ? dice.among({3, 4, 4, 4, 5}) : dice.among({0, 1, 2, 2, 2, 3, 3, 4}));
  for (auto& size : result) size = dice.percent(1) ? 0 : dice.among(extents);
  if (!result.empty() && dice.percent(6)) result.back() = 65;
  while (c10::multiply_integers(result) > most_elements) *std::ranges::max_element(result) /= 2;
  return result;
}

Source draw_source(Dice& dice, const Themes& themes, Name name, at::ScalarType dtype, std::vector<int64_t> sizes) {
  Source made;
  made.name = name;
  made.dtype = dtype;
  made.sizes = std::move(sizes);
  if (at::isIntegralType(dtype, /*includeBool=*/false)) made.high = dtype == at::kLong ? 2 : 100;
  made.place = std::array{Place::dense,  Place::transposed, Place::strided,
                          Place::offset, Place::expanded,   Place::channels_last}[dice.weighted(
      {80, 6, 6, 5, 3, themes.spatial ? 30 : 0})];
  made.first_changes = themes.changes && !made.sizes.empty();
  made.last_changes = themes.changes && dice.percent(30);
  return made;
}

std::optional<ModuleSpec> draw_module(Dice& dice, const Themes& themes, const at::Tensor& input) {
  const auto channels = input.dim() > 1 ? input.size(1) : 0;
  const auto kind = std::array{ModuleKind::linear,    ModuleKind::conv1d,     ModuleKind::conv2d,
                               ModuleKind::depthwise, ModuleKind::batch_norm, ModuleKind::layer_norm,
                               ModuleKind::dropout,   ModuleKind::embedding}[dice.weighted(
      {35, 12, themes.spatial ? 25 : 0, themes.spatial ? 10 : 0, 20, 12, themes.draws ? 15 : 0, 8})];
  if ((kind == ModuleKind::embedding) != (input.scalar_type() == at::kLong) || input.dim() == 0) return std::nullopt;
  if (kind != ModuleKind::embedding && input.scalar_type() != at::kFloat) return std::nullopt;
  const auto last = input.size(-1);
  if (last == 0) return std::nullopt;
  if (kind == ModuleKind::embedding) return ModuleSpec{kind, {5, dice.among<int64_t>({2, 3, 4})}};
  if (kind == ModuleKind::linear) return ModuleSpec{kind, {last, dice.among<int64_t>({1, 3, 4, 8})}};
  if (kind == ModuleKind::layer_norm) return ModuleSpec{kind, {last, 0}};
  if (kind == ModuleKind::dropout) return ModuleSpec{kind, {0, 0}};
  if (channels == 0) return std::nullopt;
  if (kind == ModuleKind::depthwise) return ModuleSpec{kind, {channels, channels * dice.among<int64_t>({1, 2})}};
  return ModuleSpec{kind, {channels, kind == ModuleKind::batch_norm ? 0 : dice.among<int64_t>({1, 2, 4})}};
}

}  // namespace sinter::test::fuzz
