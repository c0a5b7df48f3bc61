#include "compiler/passes/find_attention.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ir/op.h"
#include "compiler/passes/aligned_halves.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/attention_operands.h"
#include "compiler/passes/batched_product.h"
#include "compiler/passes/live_nodes.h"
#include "compiler/passes/rewriter.h"
#include "compiler/passes/zero_padding.h"

namespace sinter::passes {
namespace {

using namespace ir;

constexpr int64_t fewest_tokens = 64;    ///< a tile of the kernels: of fewer queries or keys most of it is padding
constexpr int64_t longest_vector = 128;  ///< that all of the kernels take
constexpr double nothing = -std::numeric_limits<double>::infinity();  ///< a score whose weight is 0

/// Sizes of an attention.
struct Heads {
  int64_t batch, heads, queries, keys, vector;
};

/// What is done to scores before their softmax.
enum class Masking {
  added,         ///< halves are added to them
  hidden_where,  ///< they become -inf where a truth value is true
  shown_where,   ///< they become -inf where it is false
};

/// Of sizes that broadcast to those of the scores.
struct Mask {
  AttentionOperand over;
  Masking masking = Masking::added;
};

struct Attention {
  AttentionOperand query, key, values;
  std::optional<Mask> mask;
  double scale = 1;
  bool zeros = false;  ///< a row that is masked whole gives zeros, else NaN
  Heads sizes;
};

/// Finds attention by its last product.
class Matcher {
 public:
  explicit Matcher(const Graph& graph) : graph_(graph), uses_(live_nodes(graph).uses) {}

  [[nodiscard]] std::optional<Attention> attention_at(const Node& product) const {
    const auto outer = batched_product(graph_, product);
    const auto scores = outer ? scores_behind(outer->left) : std::nullopt;
    const auto inner = scores ? batched_product(graph_, graph_.producer(scores->product)) : std::nullopt;
    if (!inner || graph_.type(outer->result).dtype != graph_.type(inner->result).dtype) return std::nullopt;
    Attention found;
    found.mask = scores->mask;
    found.zeros = scores->zeros;
    found.sizes = sizes_of(*inner, scores->batch);
    const Heads& s = found.sizes;
    const bool vectors = graph_.type(outer->right).sizes[2] == Dim(s.vector) && s.vector % aligned_halves == 0;
    if (!vectors || s.vector > longest_vector) return std::nullopt;
    const bool wide = graph_.type(outer->right).dtype == DType::f32;  // products that no tensor core computes
    if (!wide && (s.queries < fewest_tokens || s.keys < fewest_tokens)) return std::nullopt;
    const auto query = attention_operand(graph_, inner->left, {s.batch, s.heads, s.queries, s.vector});
    const auto key = attention_operand(graph_, inner->right, {s.batch, s.heads, s.keys, s.vector, /*turned=*/true});
    const auto value = attention_operand(graph_, outer->right, {s.batch, s.heads, s.keys, s.vector});
    if (!query || !key || !value || value->scale != 1) return std::nullopt;
    found.query = *query, found.key = *key, found.values = *value;
    found.scale = scores->scale * query->scale * key->scale;
    return of_one_dtype(found) ? std::optional(found) : std::nullopt;
  }

 private:
  struct Scores {
    ValueId product;  ///< [batch x heads, queries, keys]
    std::optional<Mask> mask;
    double scale = 1;
    bool zeros = false;  ///< of a row that is masked whole
    int64_t batch = 1;
  };

  [[nodiscard]] static bool of_one_dtype(const Attention& found) {
    const DType dtype = found.query.type.dtype;
    return found.key.type.dtype == dtype && found.values.type.dtype == dtype &&
           (!found.mask || found.mask->masking != Masking::added || found.mask->over.type.dtype == dtype);
  }

  [[nodiscard]] std::optional<ValueId> unshaped(ValueId value) const { return behind_reshapes(graph_, uses_, value); }

  /// What is behind the softmax that a product weighs with: numbers times a product, in any row-major sizes of which
  /// the last two are its own. All in halves, or all in f32.
  [[nodiscard]] std::optional<Scores> scores_behind(ValueId weights) const {
    auto value = unshaped(weights);
    if (const auto wide = value ? behind_rounding(*value) : std::nullopt) value = unshaped(*wide);
    if (!value) return std::nullopt;
    const Node& softmax = graph_.producer(*value);
    Scores scores;
    scores.zeros = is_safe_softmax_of_rows(graph_, softmax);
    if (!scores.zeros && !is_softmax_of_rows(graph_, softmax)) return std::nullopt;
    const DType dtype = graph_.type(*softmax.args[0].value()).dtype;
    if (!is_half(dtype) && (dtype != DType::f32 || graph_.type(weights).dtype != DType::f32)) return std::nullopt;
    const auto& sizes = graph_.type(*value).sizes;
    if (sizes.size() < 3 || graph_.type(*value).numel() == 0) return std::nullopt;
    if (sizes.size() > 3) scores.batch = batch_of(sizes);
    value = unshaped(*softmax.args[0].value());
    if (auto masked = value ? masked_at(graph_.producer(*value), scores.batch) : std::nullopt) {
      scores.mask = std::move(masked->mask);
      value = unshaped(masked->scores);
    }
    while (value) {
      const Node& node = graph_.producer(*value);
      if (call_named(node, "aten::bmm", 2) != nullptr) break;
      const auto factor = factor_of(graph_, node);
      if (!factor) return std::nullopt;
      scores.scale *= *factor;
      value = unshaped(*node.args[0].value());
    }
    if (!value) return std::nullopt;
    scores.product = *value;
    const auto& own = graph_.type(*value).sizes;
    const bool same = sizes[sizes.size() - 2] == own[1] && sizes.back() == own[2];
    return same ? std::optional(scores) : std::nullopt;
  }

  /// Of the dims in front of the last two, the first that is not 1, where others follow that are the heads'.
  [[nodiscard]] static int64_t batch_of(const std::vector<Dim>& sizes) {
    if (sizes.size() == 4) return sizes[0].constant();
    const auto heads = sizes.end() - 3;
    const auto batch = std::find_if(sizes.begin(), heads, [](const Dim& size) { return !(size == Dim(1)); });
    return batch == heads ? 1 : batch->constant();
  }

  struct Masked {
    ValueId scores;
    Mask mask;
  };

  /// A sum with a bias, or -inf in place of some scores; nothing where a node is neither.
  [[nodiscard]] std::optional<Masked> masked_at(const Node& node, int64_t batch) const {
    const auto* call = node.as<Call>();
    if (call == nullptr || node.args.size() != 3) return std::nullopt;
    if (call->op == "aten::add.Tensor" && node.args[2] == Arg{int64_t{1}})
      return masked(node, 0, 1, Masking::added, batch);
    if (call->op == "aten::masked_fill.Scalar" && is_nothing(node.args[2])) {
      return masked(node, 0, 1, Masking::hidden_where, batch);
    }
    if (call->op != "aten::where.self") return std::nullopt;
    if (is_nothing(node.args[2])) return masked(node, 1, 0, Masking::shown_where, batch);
    return is_nothing(node.args[1]) ? masked(node, 2, 0, Masking::hidden_where, batch) : std::nullopt;
  }

  [[nodiscard]] static bool is_nothing(const Arg& arg) {
    const auto* number = std::get_if<double>(&arg.data);
    return number != nullptr && *number == nothing;
  }

  /// The operands of a node by their places: scores, which have the result's sizes, and what is laid over them.
  [[nodiscard]] std::optional<Masked> masked(const Node& node, size_t scores, size_t mask, Masking masking,
                                             int64_t batch) const {
    const ValueId* left = node.args[scores].value();
    const ValueId* over = node.args[mask].value();
    if (left == nullptr || over == nullptr) return std::nullopt;
    const Type& result = graph_.type(node.results[0]);
    if (graph_.type(*left).sizes != result.sizes || graph_.type(*left).dtype != result.dtype) return std::nullopt;
    const bool added = masking == Masking::added;
    if (!added && graph_.type(*over).dtype != DType::b8) return std::nullopt;
    const auto seen = added ? attention_bias(graph_, *over, result, batch) : over_scores(graph_, *over, result, batch);
    return seen ? std::optional(Masked{*left, {*seen, masking}}) : std::nullopt;
  }

  /// A softmax of halves may be asked for in f32, and rounded then.
  [[nodiscard]] std::optional<ValueId> behind_rounding(ValueId value) const {
    const auto source = source_of(graph_, value, "aten::_to_copy");
    const bool rounds = source && graph_.type(value).is_contiguous() && graph_.type(*source).dtype == DType::f32;
    return rounds ? source : std::nullopt;
  }

  [[nodiscard]] Heads sizes_of(const BatchedProduct& product, int64_t batch) const {
    const auto left = graph_.type(product.left).static_sizes();
    const auto right = graph_.type(product.right).static_sizes();
    return {batch, left[0] / batch, left[1], right[2], left[2]};
  }

  const Graph& graph_;
  std::vector<uint32_t> uses_;  ///< by nodes that are not dead
};

class AttentionBuilder {
 public:
  explicit AttentionBuilder(const Graph& old) : rewrite_(old) {
    const Matcher matcher(old);
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
  void build(const Node& product, const Attention& found) {
    const Heads& s = found.sizes;
    const Arg mask = found.mask ? Arg{mask_of(found, product)} : Arg{};
    const ValueId query = lined_up(found.query, product);
    const std::vector<Arg> args = {
        {query}, {lined_up(found.key, product)}, {lined_up(found.values, product)}, mask, {0.0}, {false}, {found.scale},
        {false}};
    Call call;
    call.op = "aten::scaled_dot_product_attention";
    const ValueId mixed = rewrite_.add(std::move(call), args,
                                       dense_like(rewrite_.next().type(query), found.query.type.sizes), product.scope);
    // As the product gave it; readers of this copy see the original where its order is theirs.
    const Type& wanted = rewrite_.old().type(product.results[0]);
    Type copied = contiguous(wanted.dtype, {s.batch, s.heads, s.queries, s.vector}, wanted.device);
    const ValueId copy = rewrite_.add(Primitive{op_named("cast")}, {{mixed}}, std::move(copied), product.scope);
    rewrite_.set(product.results[0], rewrite_.add(View{0}, {{copy}}, Type(wanted), product.scope));
  }

  /// The mask as the kernels take it.
  ValueId mask_of(const Attention& found, const Node& product) {
    ValueId mask = see(found.mask->over, product);
    if (found.mask->masking != Masking::added) mask = as_bias(mask, *found.mask, found.query.type.dtype, product);
    if (!found.zeros) mask = spoilt_rows(mask, product);
    return is_aligned(rewrite_.next(), {mask, rewrite_.next().type(mask)}) ? mask : padded(mask, product);
  }

  /// -inf where truth values hide scores, else 0.
  ValueId as_bias(ValueId truth, const Mask& mask, DType dtype, const Node& product) {
    const bool hides = mask.masking == Masking::hidden_where;
    const Type seen = rewrite_.next().type(truth);
    const std::vector<Arg> args = {{truth}, {hides ? nothing : 0.0}, {hides ? 0.0 : nothing}};
    Type bias = contiguous(dtype, seen.sizes, seen.device);
    return rewrite_.add(Primitive{op_named("where")}, args, std::move(bias), product.scope);
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

  /// An operand, or a copy of one whose vectors do not lie in one piece.
  ValueId lined_up(const AttentionOperand& operand, const Node& product) {
    const ValueId seen = see(operand, product);
    if (is_aligned(rewrite_.next(), {seen, operand.type})) return seen;
    Type packed = contiguous(operand.type.dtype, operand.type.sizes, operand.type.device);
    return rewrite_.add(Primitive{op_named("cast")}, {{seen}}, std::move(packed), product.scope);
  }

  ValueId see(const AttentionOperand& operand, const Node& product) {
    return rewrite_.add(View{0}, {{rewrite_.get(operand.value)}}, Type(operand.type), product.scope);
  }

  Rewriter rewrite_;
  std::unordered_map<NodeId, Attention> found_;  ///< by the last product
};

}  // namespace

PassResult find_attention(Graph& graph, const PassContext& context) {
  if (!context.fast_on_cuda()) return {};
  AttentionBuilder builder(graph);
  if (builder.changes() == 0) return {};
  graph = builder.run();
  return {builder.changes()};
}

}  // namespace sinter::passes
