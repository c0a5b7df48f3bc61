#include "compiler/passes/find_attention.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/ir/op.h"
#include "compiler/passes/aligned_halves.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/attention_operands.h"
#include "compiler/passes/attention_scores.h"
#include "compiler/passes/batched_product.h"
#include "compiler/passes/joined_dims.h"
#include "compiler/passes/live_nodes.h"
#include "compiler/passes/rewriter.h"
#include "compiler/passes/short_attention.h"
#include "compiler/passes/zero_padding.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// Three dims of which the outermost and the innermost make up a batch, and that between them is the heads'.
using HeadsBetween = std::array<int64_t, 3>;

/// A type of [outer, heads, inner, tokens, vector] with the dims of the batch as one; false where they do not lie so.
bool join_batch(Type& type) {
  constexpr std::array<size_t, 2> batch = {0, 2};
  const auto joined = joined_dims(type, batch);
  if (!joined) return false;
  type.sizes[0] = joined->size;
  type.strides[0] = joined->stride;
  type.sizes.erase(type.sizes.begin() + 2);
  type.strides.erase(type.strides.begin() + 2);
  return true;
}

constexpr int64_t fewest_tokens = 64;    ///< a tile of the kernels: of fewer queries or keys most of it is padding
constexpr int64_t longest_vector = 128;  ///< that all of the kernels take
constexpr int first_with_products = 80;  ///< compute capability whose tensor cores generated kernels use

/// Sizes of an attention.
struct Heads {
  int64_t batch, heads, queries, keys, vector;
};

/// Of sizes that broadcast to those of the scores.
struct Mask {
  AttentionOperand over;
  Masking masking = Masking::added;
};

/// What becomes a call.
struct CalledAttention {
  AttentionOperand query, key, values;
  std::optional<Mask> mask;
  double scale = 1;
  bool zeros = false;  ///< a row that is masked whole gives zeros, else NaN
  Heads sizes;
  std::optional<HeadsBetween> between = {};  ///< how scores have batch and heads, where not outside each other
};

using Found = std::variant<CalledAttention, ShortAttention>;

/// Finds attention by its last product.
class Matcher {
 public:
  Matcher(const Graph& graph, const PassContext& context)
      : graph_(graph),
        uses_(live_nodes(graph).uses),
        generates_(context.device.sm >= first_with_products && !context.generic_sizes) {}

  [[nodiscard]] std::optional<Found> attention_at(const Node& product) const {
    if (generates_) {
      if (auto found = short_attention_call(graph_, uses_, product)) return std::move(*found);
    }
    const auto outer = batched_product(graph_, product);
    const auto scores = outer ? scores_behind(graph_, uses_, outer->left) : std::nullopt;
    const auto inner = scores ? batched_product(graph_, graph_.producer(scores->product)) : std::nullopt;
    if (!inner || graph_.type(outer->result).dtype != graph_.type(inner->result).dtype) return std::nullopt;
    if (generates_) {
      if (auto found = short_attention(graph_, *scores, *inner, *outer)) return std::move(*found);
    }
    const auto called = called_attention(*scores, *inner, *outer);
    return called ? std::optional<Found>(*called) : std::nullopt;
  }

 private:
  [[nodiscard]] std::optional<CalledAttention> called_attention(const AttentionScores& scores,
                                                                const BatchedProduct& inner,
                                                                const BatchedProduct& outer) const {
    const auto& sizes = scores.type.sizes;
    CalledAttention found;
    found.zeros = scores.zeros;
    found.sizes = sizes_of(inner, sizes.size() > 3 ? batch_of(sizes) : 1);
    const Heads& s = found.sizes;
    found.mask = mask_of(scores, s.batch);
    if (!scores.masks.empty() && !found.mask) return std::nullopt;
    const bool vectors = graph_.type(outer.right).sizes[2] == Dim(s.vector) && s.vector % aligned_halves == 0;
    if (!vectors || s.vector > longest_vector) return std::nullopt;
    const bool wide = graph_.type(outer.right).dtype == DType::f32;  // products that no tensor core computes
    if (!wide && (s.queries < fewest_tokens || s.keys < fewest_tokens)) return std::nullopt;
    auto operands = attention_operands(graph_, inner, outer, {.batch = s.batch, .heads = s.heads});
    if (!operands && !found.mask && scores.type.rank() == 5) {
      const auto dims = scores.type.static_sizes();
      found.between = {dims[0], dims[1], dims[2]};
      operands = operands_between(*found.between, inner, outer);
    }
    if (!operands || !fits_mask(found, operands->query.type.dtype)) return std::nullopt;
    found.query = operands->query, found.key = operands->key, found.values = operands->values;
    found.scale = scores.scale * found.query.scale * found.key.scale;
    return found;
  }

  /// Of scores whose heads lie between dims of the batch.
  [[nodiscard]] std::optional<AttentionOperands> operands_between(const HeadsBetween& between,
                                                                  const BatchedProduct& inner,
                                                                  const BatchedProduct& outer) const {
    auto found = attention_operands(graph_, inner, outer, {.apart = {between.begin(), between.end()}});
    const bool joined =
        found && join_batch(found->query.type) && join_batch(found->key.type) && join_batch(found->values.type);
    return joined ? found : std::nullopt;
  }

  [[nodiscard]] static bool fits_mask(const CalledAttention& found, DType dtype) {
    return !found.mask || found.mask->masking != Masking::added || found.mask->over.type.dtype == dtype;
  }

  /// Of the dims in front of the last two, the first that is not 1, where others follow that are the heads'.
  [[nodiscard]] static int64_t batch_of(const std::vector<Dim>& sizes) {
    if (sizes.size() == 4) return sizes[0].constant();
    const auto heads = sizes.end() - 3;
    const auto batch = std::find_if(sizes.begin(), heads, [](const Dim& size) { return !(size == Dim(1)); });
    return batch == heads ? 1 : batch->constant();
  }

  /// The one mask over scores as the kernels see it; nothing where there are several, or one that lies otherwise.
  [[nodiscard]] std::optional<Mask> mask_of(const AttentionScores& scores, int64_t batch) const {
    if (scores.masks.size() != 1) return std::nullopt;
    const ScoreMask& mask = scores.masks[0];
    const bool added = mask.masking == Masking::added;
    const auto seen = added ? attention_bias(graph_, mask.over, mask.scores, batch)
                            : over_scores(graph_, mask.over, mask.scores, batch);
    return seen ? std::optional(Mask{*seen, mask.masking}) : std::nullopt;
  }

  [[nodiscard]] Heads sizes_of(const BatchedProduct& product, int64_t batch) const {
    const auto left = graph_.type(product.left).static_sizes();
    const auto right = graph_.type(product.right).static_sizes();
    return {batch, left[0] / batch, left[1], right[2], left[2]};
  }

  const Graph& graph_;
  std::vector<uint32_t> uses_;  ///< by nodes that are not dead
  bool generates_;              ///< kernels for few keys
};

class AttentionBuilder {
 public:
  AttentionBuilder(const Graph& old, const PassContext& context) : rewrite_(old) {
    const Matcher matcher(old, context);
    for (const NodeId id : old.order()) {
      if (auto found = matcher.attention_at(old.node(id))) found_.emplace(id, std::move(*found));
    }
  }

  Graph run() {
    for (const NodeId id : rewrite_.old().order()) {
      const auto found = found_.find(id);
      if (found == found_.end()) {
        rewrite_.copy(id);
      } else {
        build(rewrite_.old().node(id), found->second);
      }
    }
    return rewrite_.finish();
  }

  [[nodiscard]] int64_t changes() const { return static_cast<int64_t>(found_.size()); }

 private:
  void build(const Node& product, const Found& found) {
    const auto* few = std::get_if<ShortAttention>(&found);
    const ValueId mixed = few != nullptr ? add_short_attention(rewrite_, *few, product.scope)
                                         : called(std::get<CalledAttention>(found), product);
    const Type& wanted = rewrite_.old().type(product.results[0]);
    const Type given = rewrite_.next().type(mixed);
    if (given == wanted) return rewrite_.set(product.results[0], mixed);
    // As the product gave it; readers of this copy see the original where its order is theirs.
    Type copied = given.sizes == wanted.sizes ? wanted : contiguous(wanted.dtype, given.sizes, wanted.device);
    const ValueId copy = rewrite_.add(Primitive{op_named("cast")}, {{mixed}}, std::move(copied), product.scope);
    rewrite_.set(product.results[0], rewrite_.add(View{0}, {{copy}}, Type(wanted), product.scope));
  }

  /// The call's result, its heads where the scores had them.
  ValueId called(const CalledAttention& found, const Node& product) {
    const ValueId mixed = call(found, product);
    if (!found.between) return mixed;
    Type type = rewrite_.next().type(mixed);
    const auto& [outer, heads, inner] = *found.between;
    const Dim apart = type.strides[0].constant() * inner;
    type.sizes.insert(type.sizes.begin() + 2, Dim(inner));
    type.strides.insert(type.strides.begin() + 2, type.strides[0]);
    type.sizes[0] = outer;
    type.strides[0] = apart;
    return rewrite_.add(View{0}, {{mixed}}, std::move(type), product.scope);
  }

  ValueId call(const CalledAttention& found, const Node& product) {
    const Arg mask = found.mask ? Arg{mask_of(found, product)} : Arg{};
    const ValueId query = lined_up(rewrite_, found.query, /*aligned=*/true, product.scope);
    const std::vector<Arg> args = {{query},
                                   {lined_up(rewrite_, found.key, /*aligned=*/true, product.scope)},
                                   {lined_up(rewrite_, found.values, /*aligned=*/true, product.scope)},
                                   mask,
                                   {0.0},
                                   {false},
                                   {found.scale},
                                   {false}};
    Call call;
    call.op = "aten::scaled_dot_product_attention";
    return rewrite_.add(std::move(call), args, dense_like(rewrite_.next().type(query), found.query.type.sizes),
                        product.scope);
  }

  /// The mask as the kernels take it.
  ValueId mask_of(const CalledAttention& found, const Node& product) {
    ValueId mask = see(found.mask->over, product);
    if (found.mask->masking != Masking::added) {
      const Type seen = rewrite_.next().type(mask);
      Type bias = contiguous(found.query.type.dtype, seen.sizes, seen.device);
      mask = add_hiding_bias(rewrite_, mask, found.mask->masking, std::move(bias), product.scope);
    }
    if (!found.zeros) mask = spoilt_rows(mask, product);
    return is_aligned(rewrite_.next(), {mask, rewrite_.next().type(mask)}) ? mask : padded(mask, product);
  }

  /// A copy of a mask of which each row begins at a multiple of 16 bytes.
  ValueId padded(ValueId mask, const Node& product) {
    const Type seen = rewrite_.next().type(mask);
    const Type packed = contiguous(seen.dtype, seen.sizes, seen.device);
    const ValueId copy = rewrite_.add(Primitive{op_named("cast")}, {{mask}}, Type(packed), product.scope);
    const int64_t missing = missing_halves(seen.sizes.back().constant());
    if (missing == 0) return copy;
    const ValueId wide = among_zeros(rewrite_, copy, 3, 0, missing, product.scope);
    Type shown = rewrite_.next().type(wide);
    shown.sizes = seen.sizes;
    return rewrite_.add(View{0}, {{wide}}, std::move(shown), product.scope);
  }

  /// The mask, of which rows that leave nothing, or take all, are NaN: what is infinite times 0 is.
  ValueId spoilt_rows(ValueId mask, const Node& product) {
    const Type type = rewrite_.next().type(mask);
    const Type whole = dense_like(type, type.sizes);
    std::vector<Dim> sizes = type.sizes;
    sizes.back() = 1;
    const Type by_row = contiguous(type.dtype, std::move(sizes), type.device);
    Call call;
    call.op = "aten::amax";
    const ValueId greatest = rewrite_.add(std::move(call), {{mask}, {ArgList{{-1}}}, {true}}, by_row, product.scope);
    const ValueId spoilt = rewrite_.add(Primitive{op_named("mul")}, {{greatest}, {0.0}}, by_row, product.scope);
    return rewrite_.add(Primitive{op_named("add")}, {{mask}, {spoilt}}, whole, product.scope);
  }

  ValueId see(const AttentionOperand& operand, const Node& product) {
    return rewrite_.add(View{0}, {{rewrite_.get(operand.value)}}, Type(operand.type), product.scope);
  }

  Rewriter rewrite_;
  std::unordered_map<NodeId, Found> found_;  ///< by the last product
};

}  // namespace

PassResult find_attention(Graph& graph, const PassContext& context) {
  if (!context.fast_on_cuda()) return {};
  AttentionBuilder builder(graph, context);
  if (builder.changes() == 0) return {};
  graph = builder.run();
  return {builder.changes()};
}

}  // namespace sinter::passes
