#include "compiler/passes/grouped_call.h"

#include <array>

#include "compiler/passes/layout_rules.h"

namespace sinter::passes {

using namespace ir;

namespace {

bool is_row_major(const Graph& graph, const Arg& arg, int64_t elements) {
  if (!reads_tensor(graph, arg)) return false;
  const Type& type = graph.type(*arg.value());
  return is_float(type.dtype) && type.is_contiguous() && type.numel() == elements;
}

}  // namespace

std::optional<Grouped> grouped_sizes(const CallSite& site, size_t first) {
  std::array<int64_t, 4> numbers{};
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto* number = std::get_if<int64_t>(&site.args[first + i].data);
    if (number == nullptr || *number < 1) return std::nullopt;
    numbers[i] = *number;
  }
  const auto [samples, channels, elements, groups] = numbers;
  if (channels % groups != 0) return std::nullopt;
  return Grouped{samples, groups, channels / groups, elements};
}

std::optional<Type> seen_in_groups(const Graph& graph, const Arg& arg, const Grouped& grouped) {
  if (!reads_tensor(graph, arg)) return std::nullopt;
  const Type& image = graph.type(*arg.value());
  Type seen = image;
  seen.sizes = grouped.sizes();
  if (is_grouped(graph, arg, grouped)) {
    seen.strides = contiguous_strides(seen.sizes);
    return seen;
  }
  const bool fits = is_float(image.dtype) && image.is_static() && image.is_dense() && image.rank() > 2 &&
                    image.sizes[0] == Dim(grouped.samples) && image.sizes[1] == Dim(grouped.groups * grouped.channels);
  if (!fits || !are_one_dim(image, 2, image.rank() - 1)) return std::nullopt;
  const Dim channel = image.strides[1];
  seen.strides = {image.strides[0], channel * grouped.channels, channel, image.strides.back()};
  return seen.numel() == image.numel() ? std::optional(seen) : std::nullopt;
}

bool is_grouped(const Graph& graph, const Arg& arg, const Grouped& grouped) {
  return is_row_major(graph, arg, grouped.samples * grouped.groups * grouped.channels * grouped.elements);
}

bool is_parameter(const Graph& graph, const Arg& arg, const Grouped& grouped) {
  return arg.is_none() || is_row_major(graph, arg, grouped.groups * grouped.channels);
}

}  // namespace sinter::passes
