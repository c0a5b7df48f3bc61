#include "compiler/passes/attention_operands.h"

#include <cmath>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "compiler/ir/view_source.h"
#include "compiler/passes/aligned_halves.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/joined_dims.h"

namespace sinter::passes {
namespace {

using namespace ir;

using Order = std::vector<size_t>;  ///< dim of what is seen, by dim of the operand

/// A finite number that is not 0.
std::optional<double> number_of(const Arg& arg) {
  double number = 0;
  if (const auto* real = std::get_if<double>(&arg.data)) number = *real;
  if (const auto* whole = std::get_if<int64_t>(&arg.data)) number = static_cast<double>(*whole);
  return std::isnormal(number) ? std::optional(number) : std::nullopt;
}

/// Sizes of an operand: of its batch, then [tokens, vector], or turned, [vector, tokens].
struct OperandSizes {
  const AttentionBatch& batch;
  int64_t tokens, vector;
  bool turned = false;
};

std::vector<Dim> sizes_of(const OperandSizes& sizes) {
  std::vector<Dim> all{sizes.batch.batch, sizes.batch.heads};
  if (!sizes.batch.apart.empty()) all.assign(sizes.batch.apart.begin(), sizes.batch.apart.end());
  all.insert(all.end(), {sizes.tokens, sizes.vector});
  if (sizes.turned) std::swap(all[all.size() - 2], all.back());
  return all;
}

/// How many of the dims in front of the last two are the batch's.
size_t batch_dims(const Type& type, int64_t batch) {
  size_t dims = 0;
  for (int64_t before = 1; before < batch && dims + 2 < type.rank(); ++dims) before *= type.sizes[dims].constant();
  return dims;
}

/// A type of two dims or more seen in four, the first `outer_dims` of them as one, and the others in front of the last
/// two. Nothing where they do not lie so in memory.
std::optional<Type> in_four_dims(const Type& type, size_t outer_dims) {
  const size_t end = type.rank() - 2;
  std::vector<size_t> dims(end);
  std::iota(dims.begin(), dims.end(), size_t{0});
  const auto outer = joined_dims(type, std::span(dims).first(outer_dims));
  const auto inner = joined_dims(type, std::span(dims).subspan(outer_dims));
  if (!outer || !inner) return std::nullopt;
  Type seen = type;
  seen.sizes = {outer->size, inner->size, type.sizes[end], type.sizes[end + 1]};
  seen.strides = {outer->stride, inner->stride, type.strides[end], type.strides[end + 1]};
  return seen;
}

/// A type seen in these sizes; nothing where it does not lie so.
std::optional<Type> in_sizes(const Type& type, const OperandSizes& sizes) {
  if (!type.is_static() || type.rank() < 2) return std::nullopt;
  const AttentionBatch& batch = sizes.batch;
  auto seen = batch.apart.empty() ? in_four_dims(type, batch_dims(type, batch.batch)) : std::optional(type);
  return seen && seen->sizes == sizes_of(sizes) ? seen : std::nullopt;
}

std::optional<AttentionOperand> in_sizes(const Graph& graph, ValueId value, const OperandSizes& sizes) {
  auto seen = in_sizes(graph.type(value), sizes);
  return seen ? std::optional(AttentionOperand{value, *std::move(seen)}) : std::nullopt;
}

/// What was copied row-major to make batch and heads one dim, seen in four dims.
std::optional<AttentionOperand> in_front_of_copy(const Graph& graph, ValueId value, const OperandSizes& sizes) {
  while (is_reshape(graph, value)) value = *graph.producer(value).args[0].value();
  const auto source = source_of(graph, value, "aten::clone");
  if (!source || !graph.type(value).is_contiguous()) return std::nullopt;
  return in_sizes(graph, *source, sizes);
}

/// The operand in dims of its own for batch and heads, [batch x heads, rows, columns] before.
AttentionOperand split(const Graph& graph, ValueId value, const OperandSizes& sizes) {
  Type type = graph.type(value);
  const auto strides = type.strides;
  type.sizes = sizes_of(sizes);
  type.strides = {strides[1], strides[2]};
  Dim stride = strides[0];
  for (size_t dim = type.rank() - 2; dim-- > 0; stride = stride * type.sizes[dim].constant()) {
    type.strides.insert(type.strides.begin(), stride);
  }
  return {value, std::move(type)};
}

/// What was seen with batch and heads as one dim, seen in four dims.
std::optional<AttentionOperand> in_front_of_merging(const Graph& graph, ValueId value, const OperandSizes& sizes) {
  const Node& node = graph.producer(value);
  if (node.as<View>() == nullptr || node.as<View>()->offset != 0) return std::nullopt;
  auto seen = in_sizes(graph, *node.args[0].value(), sizes);
  if (!seen || seen->type.strides != split(graph, value, sizes).type.strides) return std::nullopt;
  return seen;
}

/// The same in front of numbers that it was multiplied by; itself where nothing of its sizes was.
AttentionOperand in_front_of_factors(const Graph& graph, const AttentionOperand& operand, const OperandSizes& sizes) {
  const Node& node = graph.producer(operand.value);
  const auto factor = factor_of(graph, node);
  if (!factor) return operand;
  auto seen = in_sizes(graph, *node.args[0].value(), sizes);
  if (!seen) return operand;
  seen->scale = operand.scale * *factor;
  return *seen;
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
  if (shown.rank() != source.rank()) return std::nullopt;
  const size_t rank = shown.rank();
  Order order(rank);
  std::vector<bool> taken(rank);
  for (size_t dim = 0; dim < rank; ++dim) {
    size_t from = 0;
    while (from < rank && (taken[from] || !(shown.sizes[dim] == source.sizes[from]) ||
                           !(shown.sizes[dim] == Dim(1) || shown.strides[dim] == source.strides[from]))) {
      ++from;
    }
    if (from == rank) return std::nullopt;
    taken[from] = true;
    order[dim] = from;
  }
  return order;
}

/// A value of f32 as the halves that it is a multiple of.
std::optional<AttentionOperand> behind_widening(const Graph& graph, ValueId value, const OperandSizes& sizes) {
  Order order(graph.type(value).rank());
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
      if (!narrow || !is_half(graph.type(*narrow).dtype)) return std::nullopt;
      auto halves = in_sizes(ordered(graph.type(*narrow), order), sizes);
      return halves ? std::optional(AttentionOperand{*narrow, *std::move(halves), scale}) : std::nullopt;
    }
  }
}

AttentionOperand turned(AttentionOperand operand) {
  const size_t row = operand.type.rank() - 2;
  std::swap(operand.type.sizes[row], operand.type.sizes[row + 1]);
  std::swap(operand.type.strides[row], operand.type.strides[row + 1]);
  return operand;
}

/// True where each dim is that of the whole, or 1: of several that became one, all or none repeat.
bool repeats(const Type& part, const Type& whole) {
  for (size_t dim = 0; dim < part.rank(); ++dim) {
    if (!(part.sizes[dim] == Dim(1)) && !(part.sizes[dim] == whole.sizes[dim])) return false;
  }
  return true;
}

/// True for an operand as kernels take it: aligned, or with vectors in one piece where that is enough.
bool lies_well(const Graph& graph, const AttentionOperand& operand, bool aligned) {
  return aligned ? is_aligned(graph, operand) : operand.type.strides.back() == Dim(1);
}

/// An operand of a batched product as halves, as `attention_operands` says.
std::optional<AttentionOperand> attention_operand(const Graph& graph, ValueId value, const OperandSizes& sizes) {
  const auto as_kernels_do = [&](AttentionOperand seen) { return sizes.turned ? turned(std::move(seen)) : seen; };
  const auto copied = in_front_of_copy(graph, value, sizes);
  if (!is_half(graph.type(value).dtype)) {
    const auto seen = copied ? copied : in_front_of_merging(graph, value, sizes);
    const auto wide = seen ? behind_widening(graph, seen->value, sizes) : std::nullopt;
    return wide ? std::optional(as_kernels_do(*wide)) : std::nullopt;
  }
  if (copied) {
    for (const AttentionOperand& seen : {in_front_of_factors(graph, *copied, sizes), *copied}) {
      std::optional<AttentionOperand> found = as_kernels_do(seen);
      if (lies_well(graph, *found, sizes.batch.aligned)) return found;
    }
  }
  std::optional<AttentionOperand> found = as_kernels_do(split(graph, value, sizes));
  if (lies_well(graph, *found, sizes.batch.aligned)) return found;
  return std::nullopt;
}

}  // namespace

std::optional<ValueId> source_of(const Graph& graph, ValueId value, std::string_view op) {
  const Node& node = graph.producer(value);
  const auto* call = node.as<Call>();
  const auto* source = call != nullptr && call->op == op && !node.args.empty() ? node.args[0].value() : nullptr;
  return source != nullptr ? std::optional(*source) : std::nullopt;
}

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
  if (!(strides.back() == Dim(1)) || view_source(graph, operand.value).offset % aligned_halves != 0) return false;
  for (size_t dim = 0; dim + 1 < strides.size(); ++dim) {
    if (operand.type.sizes[dim] == Dim(1)) continue;
    const int64_t stride = strides[dim].constant();
    if (stride < 0 || stride % aligned_halves != 0) return false;
  }
  return true;
}

std::optional<AttentionOperands> attention_operands(const Graph& graph, const BatchedProduct& inner,
                                                    const BatchedProduct& outer, const AttentionBatch& batch) {
  const auto queries = graph.type(inner.left).static_sizes();
  const int64_t vector = queries[2], keys = graph.type(inner.right).sizes[2].constant();
  const auto query = attention_operand(graph, inner.left, {batch, queries[1], vector});
  const auto key = attention_operand(graph, inner.right, {batch, keys, vector, /*turned=*/true});
  const auto values = attention_operand(graph, outer.right, {batch, keys, vector});
  if (!query || !key || !values || values->scale != 1) return std::nullopt;
  const DType dtype = query->type.dtype;
  if (key->type.dtype != dtype || values->type.dtype != dtype) return std::nullopt;
  return AttentionOperands{*query, *key, *values};
}

ValueId lined_up(Rewriter& rewrite, const AttentionOperand& operand, bool aligned, ScopeId scope) {
  const ValueId seen = rewrite.add(View{0}, {{rewrite.get(operand.value)}}, Type(operand.type), scope);
  if (lies_well(rewrite.next(), {seen, operand.type}, aligned)) return seen;
  Type packed = contiguous(operand.type.dtype, operand.type.sizes, operand.type.device);
  return rewrite.add(Primitive{op_named("cast")}, {{seen}}, std::move(packed), scope);
}

std::optional<AttentionOperand> over_scores(const Graph& graph, ValueId value, const Type& scores, int64_t batch) {
  AttentionOperand over{value, graph.type(value)};
  const bool fits = over.type.is_static() && over.type.rank() >= 2 && over.type.rank() <= scores.rank() &&
                    over.type.sizes.back() == scores.sizes.back();
  if (!fits) return std::nullopt;
  while (over.type.rank() < scores.rank()) {
    over.type.sizes.insert(over.type.sizes.begin(), 1);
    over.type.strides.insert(over.type.strides.begin(), 0);
  }
  for (size_t dim = 0; dim + 1 < over.type.rank(); ++dim) {
    if (over.type.strides[dim] == Dim(0)) over.type.sizes[dim] = 1;  // the kernels repeat it
  }
  const size_t outer_dims = batch_dims(scores, batch);
  const auto seen = in_four_dims(over.type, outer_dims);
  const auto whole = in_four_dims(contiguous(scores.dtype, scores.sizes, scores.device), outer_dims);
  if (!seen || !repeats(*seen, *whole)) return std::nullopt;
  over.type = *seen;
  return over;
}

std::optional<AttentionOperand> attention_bias(const Graph& graph, ValueId value, const Type& scores, int64_t batch) {
  if (const auto narrow = source_of(graph, value, "aten::_to_copy"); narrow && !is_half(graph.type(value).dtype)) {
    value = *narrow;
  }
  if (!is_half(graph.type(value).dtype)) return std::nullopt;
  return over_scores(graph, value, scores, batch);
}

}  // namespace sinter::passes
