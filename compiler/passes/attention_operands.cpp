#include "compiler/passes/attention_operands.h"

#include <array>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "compiler/ir/view_source.h"
#include "compiler/passes/aligned_halves.h"
#include "compiler/passes/aten.h"

namespace sinter::passes {
namespace {

using namespace ir;

using Order = std::array<size_t, 4>;  ///< dim of what is seen, by dim of the operand

/// A finite number that is not 0.
std::optional<double> number_of(const Arg& arg) {
  double number = 0;
  if (const auto* real = std::get_if<double>(&arg.data)) number = *real;
  if (const auto* whole = std::get_if<int64_t>(&arg.data)) number = static_cast<double>(*whole);
  return std::isnormal(number) ? std::optional(number) : std::nullopt;
}

std::vector<Dim> sizes_of(const OperandSizes& sizes) {
  if (sizes.turned) return {sizes.batch, sizes.heads, sizes.vector, sizes.tokens};
  return {sizes.batch, sizes.heads, sizes.tokens, sizes.vector};
}

std::optional<ValueId> source_of(const Graph& graph, ValueId value, std::string_view op) {
  const Node& node = graph.producer(value);
  const auto* call = node.as<Call>();
  const auto* source = call != nullptr && call->op == op && !node.args.empty() ? node.args[0].value() : nullptr;
  return source != nullptr ? std::optional(*source) : std::nullopt;
}

/// What was copied row-major to make batch and heads one dim.
std::optional<ValueId> in_front_of_copy(const Graph& graph, ValueId value, const std::vector<Dim>& sizes) {
  while (is_reshape(graph, value)) value = *graph.producer(value).args[0].value();
  const auto source = source_of(graph, value, "aten::clone");
  const bool fits = source && graph.type(value).is_contiguous() && graph.type(*source).sizes == sizes;
  return fits ? source : std::nullopt;
}

Type ordered(const Type& type, const Order& order) {
  Type result = type;
  for (size_t dim = 0; dim < order.size(); ++dim) {
    result.sizes[dim] = type.sizes[order[dim]];
    result.strides[dim] = type.strides[order[dim]];
  }
  return result;
}

/// The order in which a view shows the dims of what it is of; nothing where it does more than that.
std::optional<Order> order_of(const Graph& graph, ValueId view) {
  const Node& node = graph.producer(view);
  if (node.as<View>() == nullptr || node.as<View>()->offset != 0) return std::nullopt;
  const Type& shown = graph.type(view);
  const Type& source = graph.type(*node.args[0].value());
  if (shown.rank() != 4 || source.rank() != 4) return std::nullopt;
  Order order{};
  std::array<bool, 4> taken{};
  for (size_t dim = 0; dim < 4; ++dim) {
    size_t from = 0;
    while (from < 4 && (taken[from] || !(shown.sizes[dim] == source.sizes[from]) ||
                        !(shown.sizes[dim] == Dim(1) || shown.strides[dim] == source.strides[from]))) {
      ++from;
    }
    if (from == 4) return std::nullopt;
    taken[from] = true;
    order[dim] = from;
  }
  return order;
}

/// A value of f32 in four dims as the halves that it is a multiple of.
std::optional<AttentionOperand> behind_widening(const Graph& graph, ValueId value) {
  Order order;
  std::iota(order.begin(), order.end(), size_t{0});
  double scale = 1;
  for (;;) {
    if (const auto seen = order_of(graph, value)) {
      for (size_t& dim : order) dim = (*seen)[dim];
      value = *graph.producer(value).args[0].value();
    } else if (const auto factor = factor_of(graph, graph.producer(value))) {
      scale *= *factor;
      value = *graph.producer(value).args[0].value();
    } else if (const auto copied = source_of(graph, value, "aten::clone")) {
      value = *copied;
    } else {
      const auto narrow = source_of(graph, value, "aten::_to_copy");
      if (!narrow || !is_half(graph.type(*narrow).dtype) || graph.type(*narrow).rank() != 4) return std::nullopt;
      return AttentionOperand{*narrow, ordered(graph.type(*narrow), order), scale};
    }
  }
}

/// The operand in dims of its own for batch and heads, [batch x heads, rows, columns] before.
AttentionOperand split(const Graph& graph, ValueId value, const std::vector<Dim>& sizes) {
  Type type = graph.type(value);
  const auto strides = type.strides;
  type.sizes = sizes;
  type.strides = {strides[0] * sizes[1].constant(), strides[0], strides[1], strides[2]};
  return {value, std::move(type)};
}

AttentionOperand turned(AttentionOperand operand) {
  std::swap(operand.type.sizes[2], operand.type.sizes[3]);
  std::swap(operand.type.strides[2], operand.type.strides[3]);
  return operand;
}

}  // namespace

std::optional<double> factor_of(const Graph& graph, const Node& node) {
  const auto* call = node.as<Call>();
  if (call == nullptr || node.args.size() != 2 || node.args[0].value() == nullptr) return std::nullopt;
  const bool times = call->op == "aten::mul.Tensor" || call->op == "aten::mul.Scalar";
  if (!times && call->op != "aten::div.Tensor" && call->op != "aten::div.Scalar") return std::nullopt;
  const auto number = number_of(node.args[1]);
  if (!number || graph.type(node.results[0]).dtype != graph.type(*node.args[0].value()).dtype) return std::nullopt;
  return times ? *number : 1 / *number;
}

bool is_aligned(const Graph& graph, const AttentionOperand& operand) {
  const auto& strides = operand.type.strides;
  if (!(strides[3] == Dim(1)) || view_source(graph, operand.value).offset % aligned_halves != 0) return false;
  for (size_t dim = 0; dim < 3; ++dim) {
    if (operand.type.sizes[dim] == Dim(1)) continue;
    const int64_t stride = strides[dim].constant();
    if (stride < 0 || stride % aligned_halves != 0) return false;
  }
  return true;
}

std::optional<AttentionOperand> attention_operand(const Graph& graph, ValueId value, const OperandSizes& sizes) {
  const std::vector<Dim> own = sizes_of(sizes);
  const auto as_kernels_do = [&](AttentionOperand seen) { return sizes.turned ? turned(std::move(seen)) : seen; };
  const auto copied = in_front_of_copy(graph, value, own);
  if (!is_half(graph.type(value).dtype)) {
    const auto wide = copied ? behind_widening(graph, *copied) : std::nullopt;
    const auto found = wide ? std::optional(as_kernels_do(*wide)) : std::nullopt;
    return found && is_aligned(graph, *found) ? found : std::nullopt;
  }
  if (copied) {
    std::optional<AttentionOperand> found = as_kernels_do({*copied, graph.type(*copied)});
    if (is_aligned(graph, *found)) return found;
  }
  std::optional<AttentionOperand> found = as_kernels_do(split(graph, value, own));
  if (is_aligned(graph, *found)) return found;
  return std::nullopt;
}

std::optional<AttentionOperand> attention_mask(const Graph& graph, ValueId value, const Type& scores) {
  if (const auto narrow = source_of(graph, value, "aten::_to_copy"); narrow && !is_half(graph.type(value).dtype)) {
    value = *narrow;
  }
  AttentionOperand mask{value, graph.type(value)};
  const bool fits = is_half(mask.type.dtype) && mask.type.is_static() && mask.type.rank() >= 2 &&
                    mask.type.rank() <= scores.rank() && mask.type.sizes.back() == scores.sizes.back();
  if (!fits) return std::nullopt;
  while (mask.type.rank() < 4) {
    mask.type.sizes.insert(mask.type.sizes.begin(), 1);
    mask.type.strides.insert(mask.type.strides.begin(), 0);
  }
  for (size_t dim = 0; dim < 3; ++dim) {
    if (mask.type.strides[dim] == Dim(0)) mask.type.sizes[dim] = 1;  // the kernels repeat it
  }
  return mask;
}

}  // namespace sinter::passes
