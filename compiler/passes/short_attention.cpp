#include "compiler/passes/short_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ranges>
#include <set>
#include <string_view>
#include <utility>

#include "compiler/kernel/attention.h"
#include "compiler/passes/aten.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// Of more keys the library's kernels are faster. With a bias that has a row for every query they are slow (24 us for
/// 8 x 12 heads of 197 tokens on an H100, 7 without), and a generated one takes no longer; beyond that none was
/// measured.
constexpr int64_t most_keys = 64, most_biased_keys = 256;

/// The dims in front of the last two of each of these types as products of the same dims, outermost first: the fewest
/// that all of them are made of. Nothing where some divide otherwise.
std::optional<std::vector<int64_t>> common_batch(std::span<const Type> types) {
  std::set<int64_t> counts{1};  // of elements of the batch, from the innermost dims on
  for (const Type& type : types) {
    int64_t count = 1;
    for (size_t dim = type.rank() - 2; dim-- > 0;) counts.insert(count *= type.sizes[dim].constant());
  }
  std::vector<int64_t> batch;
  for (auto next = std::next(counts.begin()); next != counts.end(); ++next) {
    const int64_t inner = *std::prev(next);
    if (*next % inner != 0) return std::nullopt;
    batch.insert(batch.begin(), *next / inner);
  }
  return batch;
}

/// Sizes and strides in the dims of a batch and the two behind them, from the innermost dim on.
struct BatchDims {
  std::vector<int64_t> left;  ///< of the batch, outermost first
  std::vector<Dim> sizes, strides;

  /// Takes the innermost of the dims that are left, of which `size` is the product. Dims that repeat have size 1.
  void take(int64_t size, int64_t stride, bool repeats) {
    for (int64_t inner = 1; inner < size;) {
      const int64_t part = left.back();
      left.pop_back();
      sizes.insert(sizes.begin(), repeats ? 1 : part);
      strides.insert(strides.begin(), repeats ? 0 : stride * inner);
      inner *= part;
    }
  }
};

bool has_kernel(int64_t keys, int64_t vector, bool biased) {
  return keys > 0 && keys <= (biased ? most_biased_keys : most_keys) && vector > 0 &&
         vector % kernel::attention_vector_step == 0 && vector <= kernel::longest_attention_vector;
}

bool has_row_for_each_query(const Type& bias) {
  if (bias.rank() < 2) return false;
  const size_t row = bias.rank() - 2;
  return !(bias.sizes[row] == Dim(1)) && !(bias.strides[row] == Dim(0));
}

class Finder {
 public:
  Finder(const Graph& graph, const AttentionScores& scores, const BatchedProduct& inner, const BatchedProduct& outer)
      : graph_(graph), scores_(scores), inner_(inner), outer_(outer) {}

  std::optional<ShortAttention> run() {
    const auto left = graph_.type(inner_.left).static_sizes();
    const int64_t vector = left[2], keys = graph_.type(inner_.right).sizes[2].constant();
    const auto has_rows = [&](const ScoreMask& mask) { return has_row_for_each_query(graph_.type(mask.over)); };
    const bool biased = std::ranges::any_of(scores_.masks, has_rows);
    if (!has_kernel(keys, vector, biased) || !(graph_.type(outer_.right).sizes[2] == Dim(vector))) {
      return std::nullopt;
    }
    std::vector<Type> types{scores_.type};
    for (const ScoreMask& mask : scores_.masks) types.push_back(mask.scores);
    const auto batch = common_batch(types);
    if (!batch) return std::nullopt;
    batch_ = *batch;
    auto found = operands();
    if (!found || !take_masks(*found)) return std::nullopt;
    found->zeros = scores_.zeros;
    return found;
  }

 private:
  /// With as many dims of the batch seen as heads, or all dims apart, as lets most operands be read where they were
  /// before copies.
  std::optional<ShortAttention> operands() const {
    std::optional<ShortAttention> best;
    int most = -1;
    const auto keep_better = [&](std::optional<ShortAttention> found) {
      const int moved = found ? (found->query.value != inner_.left) + (found->key.value != inner_.right) +
                                    (found->values.value != outer_.right)
                              : -1;
      if (moved > most) best = std::move(found), most = moved;
    };
    int64_t outer = 1, inner = 1;
    for (const int64_t size : batch_) inner *= size;
    for (size_t dims = 0; dims <= batch_.size(); ++dims) {
      keep_better(operands_in({.batch = outer, .heads = inner, .aligned = false}));
      if (dims < batch_.size()) outer *= batch_[dims], inner /= batch_[dims];
    }
    if (batch_.size() > 2) keep_better(operands_in({.aligned = false, .apart = batch_}));
    return best;
  }

  std::optional<ShortAttention> operands_in(const AttentionBatch& batch) const {
    const auto operands = attention_operands(graph_, inner_, outer_, batch);
    if (!operands) return std::nullopt;
    const auto& [query, key, values] = *operands;
    ShortAttention found;
    found.scale = scores_.scale * query.scale * key.scale;
    found.query = in_batch(query), found.key = in_batch(key), found.values = in_batch(values);
    return found;
  }

  /// [dims of the batch in any number, tokens, vector] in those of the whole batch.
  AttentionOperand in_batch(AttentionOperand operand) const {
    Type& type = operand.type;
    const size_t row = type.rank() - 2;
    BatchDims dims{batch_, {type.sizes[row], type.sizes[row + 1]}, {type.strides[row], type.strides[row + 1]}};
    for (size_t dim = row; dim-- > 0;) {
      dims.take(type.sizes[dim].constant(), type.strides[dim].constant(), false);
    }
    type.sizes = std::move(dims.sizes);
    type.strides = std::move(dims.strides);
    return operand;
  }

  bool take_masks(ShortAttention& found) const {
    for (const ScoreMask& mask : scores_.masks) {
      auto seen = seen_mask(mask);
      if (!seen || (mask.masking == Masking::added && seen->type.dtype != found.query.type.dtype)) return false;
      found.masks.push_back(std::move(*seen));
    }
    return true;
  }

  /// What is laid over the scores, in the dims of the whole batch.
  std::optional<ShortMask> seen_mask(const ScoreMask& mask) const {
    ValueId value = mask.over;
    if (const auto narrow = source_of(graph_, value, "aten::_to_copy");
        narrow && mask.masking == Masking::added && is_half(graph_.type(*narrow).dtype)) {
      value = *narrow;
    }
    Type type = graph_.type(value);
    const size_t rank = mask.scores.rank();
    if (!type.is_static() || type.rank() > rank) return std::nullopt;
    type.sizes.insert(type.sizes.begin(), rank - type.rank(), Dim(1));
    type.strides.insert(type.strides.begin(), rank - type.strides.size(), Dim(0));
    BatchDims dims{
        batch_, {type.sizes[rank - 2], type.sizes[rank - 1]}, {type.strides[rank - 2], type.strides[rank - 1]}};
    for (size_t dim = rank - 2; dim-- > 0;) {
      const bool repeats = type.sizes[dim] == Dim(1) || type.strides[dim] == Dim(0);
      if (!repeats && !(type.sizes[dim] == mask.scores.sizes[dim])) return std::nullopt;
      dims.take(mask.scores.sizes[dim].constant(), type.strides[dim].constant(), repeats);
    }
    type.sizes = std::move(dims.sizes);
    type.strides = std::move(dims.strides);
    return ShortMask{value, std::move(type), mask.masking};
  }

  const Graph& graph_;
  const AttentionScores& scores_;
  const BatchedProduct &inner_, &outer_;
  std::vector<int64_t> batch_;  ///< dims, outermost first
};

/// Where a call of a fused kernel has what; queries, keys and values come first.
struct CallRow {
  std::string_view op;
  std::optional<size_t> bias;
  size_t dropout, causal, scale;
};
constexpr std::array calls{CallRow{"aten::_scaled_dot_product_flash_attention", std::nullopt, 3, 4, 6},
                           CallRow{"aten::_scaled_dot_product_efficient_attention", 3, 5, 6, 7},
                           CallRow{"aten::_scaled_dot_product_cudnn_attention", 3, 5, 6, 8}};

/// These sizes, each row at an even place: a thread loads the biases of two scores at once.
Type with_even_rows(const Type& like, DType dtype) {
  Type type = contiguous(dtype, like.sizes, like.device);
  const size_t row = type.rank() - 2;
  int64_t step = type.sizes[row + 1].constant();
  if (step == 1) return type;
  step += step % 2;
  for (size_t dim = row + 1; dim-- > 0; step *= type.sizes[dim].constant()) type.strides[dim] = step;
  return type;
}

/// True where rows begin at odd places, and many rows of scores take each of them.
bool gains_by_even_rows(const Type& bias, const Type& query) {
  const size_t row = bias.rank() - 2;
  const auto is_even = [](const Dim& stride) { return stride.constant() % 2 == 0; };
  const bool even =
      bias.strides[row + 1] == Dim(1) && std::ranges::all_of(bias.strides | std::views::take(row + 1), is_even);
  if (even || bias.sizes[row + 1] == Dim(1)) return false;
  constexpr int64_t few = 4;
  int64_t rows = 1, biases = 1;
  for (size_t dim = 0; dim <= row; ++dim) rows *= query.sizes[dim].constant(), biases *= bias.sizes[dim].constant();
  return rows >= few * biases;
}

/// A mask as numbers to add: -inf where it hides a score.
ValueId as_bias(Rewriter& rewrite, const ShortMask& mask, DType dtype, ScopeId scope) {
  const ValueId seen = rewrite.add(View{0}, {{rewrite.get(mask.value)}}, Type(mask.type), scope);
  if (mask.masking == Masking::added) return seen;
  return add_hiding_bias(rewrite, seen, mask.masking, with_even_rows(mask.type, dtype), scope);
}

}  // namespace

std::optional<ShortAttention> short_attention(const Graph& graph, const AttentionScores& scores,
                                              const BatchedProduct& inner, const BatchedProduct& outer) {
  return Finder(graph, scores, inner, outer).run();
}

std::optional<ShortAttention> short_attention_call(const Graph& graph, std::span<const uint32_t> uses,
                                                   const Node& node) {
  const auto* call = node.as<Call>();
  const auto* row = call == nullptr ? calls.end() : std::ranges::find(calls, call->op, &CallRow::op);
  if (row == calls.end() || node.args.size() != row->scale + 1) return std::nullopt;
  const auto* causal = std::get_if<bool>(&node.args[row->causal].data);
  if (!(node.args[row->dropout] == Arg{0.0}) || causal == nullptr) return std::nullopt;
  const auto is_read = [&](ValueId result) { return uses[result.index] != 0; };
  if (std::ranges::any_of(node.results | std::views::drop(1), is_read)) return std::nullopt;
  std::array<Type, 3> types;
  for (size_t i = 0; i < types.size(); ++i) types[i] = graph.type(*node.args[i].value());
  const auto& [query, key, values] = types;
  const bool four = query.rank() == 4 && query.is_static() && key.is_static() && values.is_static();
  if (!four || !is_half(query.dtype) || !(key.sizes == values.sizes) || query.numel() == 0) return std::nullopt;
  const int64_t vector = query.sizes[3].constant();
  const bool alike = query.sizes[0] == key.sizes[0] && query.sizes[1] == key.sizes[1] && query.sizes[3] == key.sizes[3];
  const ValueId* bias = row->bias ? node.args[*row->bias].value() : nullptr;
  const bool biased = bias != nullptr && has_row_for_each_query(graph.type(*bias));
  if (!alike || !has_kernel(key.sizes[2].constant(), vector, biased)) return std::nullopt;
  ShortAttention found;
  found.query = {*node.args[0].value(), query};
  found.key = {*node.args[1].value(), key};
  found.values = {*node.args[2].value(), values};
  const auto* scale = std::get_if<double>(&node.args[row->scale].data);
  found.scale = scale != nullptr ? *scale : 1 / std::sqrt(static_cast<double>(vector));
  found.zeros = true;
  found.causal = *causal;
  if (bias == nullptr) return found;
  Type type = graph.type(*bias);
  if (!type.is_static() || type.rank() != 4 || type.dtype != query.dtype) return std::nullopt;
  for (size_t dim = 0; dim < 4; ++dim) {
    if (type.strides[dim] == Dim(0)) type.sizes[dim] = 1;
  }
  found.masks.push_back({*bias, std::move(type), Masking::added});
  return found;
}

ValueId add_short_attention(Rewriter& rewrite, const ShortAttention& found, ScopeId scope) {
  std::vector<Arg> args;
  for (const AttentionOperand* operand : {&found.query, &found.key, &found.values}) {
    args.push_back({lined_up(rewrite, *operand, /*aligned=*/false, scope)});
  }
  std::optional<ValueId> bias;
  for (const ShortMask& mask : found.masks) {
    const ValueId next = as_bias(rewrite, mask, found.query.type.dtype, scope);
    if (!bias) {
      bias = next;
      continue;
    }
    const Type left = rewrite.next().type(*bias), right = rewrite.next().type(next);
    Type both = left;
    both.sizes = *broadcast(left.sizes, right.sizes);
    both = with_even_rows(both, left.dtype);
    bias = rewrite.add(Primitive{op_named("add")}, {{*bias}, {next}}, std::move(both), scope);
  }
  const Type query = rewrite.next().type(*args[0].value());
  if (bias && gains_by_even_rows(rewrite.next().type(*bias), query)) {
    Type even = with_even_rows(rewrite.next().type(*bias), query.dtype);
    bias = rewrite.add(Primitive{op_named("cast")}, {{*bias}}, std::move(even), scope);
  }
  if (bias) args.push_back({*bias});
  return rewrite.add(Attention{found.scale, found.zeros, found.causal}, std::move(args), dense_like(query, query.sizes),
                     scope);
}

}  // namespace sinter::passes
