#include "compiler/passes/batch_norm_call.h"

#include <algorithm>

#include "compiler/passes/reduction_rules.h"

namespace sinter::passes {

using namespace ir;

std::vector<uint32_t> dims_of_channel(size_t rank) {
  std::vector<uint32_t> dims = first_dims(rank);
  std::erase(dims, 1);
  return dims;
}

bool is_channel_vector(const Graph& graph, const Arg& arg, const Type& input) {
  if (!reads_tensor(graph, arg)) return false;
  const Type& type = graph.type(*arg.value());
  return is_float(type.dtype) && type.rank() == 1 && type.sizes[0] == input.sizes[1];
}

Arg per_channel(PrimitiveBuilder& build, const Arg& vector, size_t rank) {
  std::vector<Dim> sizes = build.type(vector).sizes;
  std::vector<Dim> strides = build.type(vector).strides;
  sizes.resize(rank - 1, 1);
  strides.resize(sizes.size(), 1);
  return build.wide(build.view(vector, std::move(sizes), std::move(strides)));
}

std::optional<BatchNormCall> batch_norm_call(const Graph& graph, const PassContext& context,
                                             std::span<const Arg> args) {
  if (args.size() != 8 || !reads_tensor(graph, args[0])) return std::nullopt;
  const auto* training = std::get_if<bool>(&args[5].data);
  const auto* momentum = std::get_if<double>(&args[6].data);
  const auto* eps = std::get_if<double>(&args[7].data);
  if (training == nullptr || !*training || momentum == nullptr || eps == nullptr) return std::nullopt;
  const Type& input = graph.type(*args[0].value());
  if (!is_float(input.dtype) || input.rank() < 2 || args[3].is_none() != args[4].is_none()) return std::nullopt;
  const bool readable = std::ranges::all_of(
      args.subspan(1, 4), [&](const Arg& arg) { return arg.is_none() || is_channel_vector(graph, arg, input); });
  std::vector<uint32_t> dims = dims_of_channel(input.rank());
  if (!readable || !worth_generating(context, input, dims)) return std::nullopt;
  const int64_t count = elements_along(input, dims);
  return BatchNormCall{args[0], args[1], args[2], args[3], args[4], *momentum, *eps, std::move(dims), count};
}

}  // namespace sinter::passes
