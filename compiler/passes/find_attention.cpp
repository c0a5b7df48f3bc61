#include "compiler/passes/find_attention.h"

#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ir/op.h"
#include "compiler/ir/view_source.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/batched_product.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

constexpr int64_t fewest_tokens = 64;    ///< a tile of the kernels: of fewer queries or keys most of it is padding
constexpr int64_t longest_vector = 128;  ///< that all of the kernels take

/// Sizes of an attention.
struct Heads {
  int64_t batch, heads, queries, keys, vector;
};

/// An operand as the kernels take it: [batch, heads, tokens, vector], vectors in one piece.
struct Operand {
  ValueId value;
  Type type;
};

struct Attention {
  Operand query, key, values;
  std::optional<Operand> mask;  ///< added to the scores, of sizes that broadcast to theirs
  double scale = 1;
  Heads sizes;
};

/// Finds attention by its last product.
class Matcher {
 public:
  explicit Matcher(const Graph& graph) : graph_(graph), uses_(use_counts(graph)) {}

  [[nodiscard]] std::optional<Attention> attention_at(const Node& product) const {
    const auto outer = batched_product(graph_, product);
    const auto scores = outer ? scores_behind(outer->left) : std::nullopt;
    const auto inner = scores ? batched_product(graph_, graph_.producer(scores->product)) : std::nullopt;
    if (!inner) return std::nullopt;
    Attention found;
    found.scale = scores->scale;
    found.mask = scores->mask;
    found.sizes = sizes_of(*inner, scores->batch);
    const Heads& s = found.sizes;
    const bool vectors = graph_.type(outer->right).sizes[2] == Dim(s.vector) && s.vector % aligned_halves == 0;
    if (!vectors || s.vector > longest_vector) return std::nullopt;
    if (s.queries < fewest_tokens || s.keys < fewest_tokens) return std::nullopt;
    const auto query = operand(inner->left, {s.batch, s.heads, s.queries, s.vector}, /*turned=*/false);
    const auto key = operand(inner->right, {s.batch, s.heads, s.keys, s.vector}, /*turned=*/true);
    const auto value = operand(outer->right, {s.batch, s.heads, s.keys, s.vector}, /*turned=*/false);
    if (!query || !key || !value) return std::nullopt;
    found.query = *query, found.key = *key, found.values = *value;
    return found;
  }

 private:
  struct Scores {
    ValueId product;  ///< [batch x heads, queries, keys]
    std::optional<Operand> mask;
    double scale = 1;
    int64_t batch = 1;
  };

  [[nodiscard]] std::optional<ValueId> unshaped(ValueId value) const { return behind_reshapes(graph_, uses_, value); }

  /// What is behind the softmax that a product weighs with: numbers times a product, in any row-major sizes of which
  /// the last two are its own.
  [[nodiscard]] std::optional<Scores> scores_behind(ValueId weights) const {
    auto value = unshaped(weights);
    if (value && is_copy_of_softmax(*value)) value = unshaped(*graph_.producer(*value).args[0].value());
    if (!value) return std::nullopt;
    const Node& softmax = graph_.producer(*value);
    if (!is_softmax_of_rows(graph_, softmax) || !is_half(graph_.type(*softmax.args[0].value()).dtype))
      return std::nullopt;
    Scores scores;
    const auto& sizes = graph_.type(*value).sizes;
    if (sizes.size() == 4) scores.batch = sizes[0].constant();
    if ((sizes.size() != 4 && sizes.size() != 3) || graph_.type(*value).numel() == 0) return std::nullopt;
    value = unshaped(*softmax.args[0].value());
    if (value && is_sum(graph_.producer(*value))) {
      scores.mask = mask_of(graph_.producer(*value));
      if (!scores.mask) return std::nullopt;
      value = unshaped(*graph_.producer(*value).args[0].value());
    }
    while (value) {
      const Node& node = graph_.producer(*value);
      if (call_named(node, "aten::bmm", 2) != nullptr) break;
      const auto factor = factor_of(node);
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

  [[nodiscard]] static bool is_sum(const Node& node) {
    if (call_named(node, "aten::add.Tensor", 3) == nullptr) return false;
    const auto* factor = std::get_if<int64_t>(&node.args[2].data);
    return node.args[0].value() != nullptr && node.args[1].value() != nullptr && factor != nullptr && *factor == 1;
  }

  /// The right operand of a sum whose left one has the sum's sizes and is the product, numbers apart. Rows in one piece
  /// that begin at multiples of 16 bytes.
  [[nodiscard]] std::optional<Operand> mask_of(const Node& sum) const {
    const Type& left = graph_.type(*sum.args[0].value());
    const Type& result = graph_.type(sum.results[0]);
    Operand mask{*sum.args[1].value(), graph_.type(*sum.args[1].value())};
    const bool fits = left.sizes == result.sizes && mask.type.dtype == result.dtype && mask.type.is_static() &&
                      mask.type.rank() >= 2 && mask.type.rank() <= result.rank() &&
                      mask.type.sizes.back() == result.sizes.back();
    if (!fits) return std::nullopt;
    while (mask.type.rank() < 4) {
      mask.type.sizes.insert(mask.type.sizes.begin(), 1);
      mask.type.strides.insert(mask.type.strides.begin(), 0);
    }
    for (size_t dim = 0; dim < 4; ++dim) {
      if (mask.type.strides[dim] == Dim(0)) mask.type.sizes[dim] = 1;  // the kernels repeat it
    }
    return is_aligned(mask) ? std::optional(mask) : std::nullopt;
  }

  /// A softmax of halves may be asked for in f32, and rounded then.
  [[nodiscard]] bool is_copy_of_softmax(ValueId value) const {
    const Node& node = graph_.producer(value);
    const auto* call = node.as<Call>();
    if (call == nullptr || call->op != "aten::_to_copy" || node.args[0].value() == nullptr) return false;
    return graph_.type(value).is_contiguous() && graph_.type(*node.args[0].value()).dtype == DType::f32;
  }

  /// The number that a node multiplies its operand by.
  [[nodiscard]] std::optional<double> factor_of(const Node& node) const {
    const auto* call = node.as<Call>();
    if (call == nullptr || node.args.size() != 2 || node.args[0].value() == nullptr) return std::nullopt;
    const bool times = call->op == "aten::mul.Tensor" || call->op == "aten::mul.Scalar";
    if (!times && call->op != "aten::div.Tensor" && call->op != "aten::div.Scalar") return std::nullopt;
    const auto number = number_of(node.args[1]);
    if (!number || graph_.type(node.results[0]).dtype != graph_.type(*node.args[0].value()).dtype) return std::nullopt;
    return times ? *number : 1 / *number;
  }

  /// A finite number that is not 0.
  static std::optional<double> number_of(const Arg& arg) {
    double number = 0;
    if (const auto* real = std::get_if<double>(&arg.data)) number = *real;
    if (const auto* whole = std::get_if<int64_t>(&arg.data)) number = static_cast<double>(*whole);
    return std::isnormal(number) ? std::optional(number) : std::nullopt;
  }

  [[nodiscard]] Heads sizes_of(const BatchedProduct& product, int64_t batch) const {
    const auto left = graph_.type(product.left).static_sizes();
    const auto right = graph_.type(product.right).static_sizes();
    return {batch, left[0] / batch, left[1], right[2], left[2]};
  }

  /// An operand of a product, [batch x heads, tokens, vector] or, turned, [batch x heads, vector, tokens], in `sizes`.
  [[nodiscard]] std::optional<Operand> operand(ValueId value, const std::vector<Dim>& sizes, bool turned) const {
    std::vector<Dim> own = sizes;
    if (turned) std::swap(own[2], own[3]);
    for (const auto& seen : {in_front_of_copy(value, own), std::optional(split(value, own))}) {
      if (!seen) continue;
      Operand found = *seen;
      if (turned) {
        std::swap(found.type.sizes[2], found.type.sizes[3]);
        std::swap(found.type.strides[2], found.type.strides[3]);
      }
      if (is_aligned(found)) return found;
    }
    return std::nullopt;
  }

  /// Vectors in one piece, each of which begins at a multiple of 16 bytes if the memory does.
  [[nodiscard]] bool is_aligned(const Operand& operand) const {
    const auto& strides = operand.type.strides;
    if (!(strides[3] == Dim(1)) || view_source(graph_, operand.value).offset % aligned_halves != 0) return false;
    for (size_t dim = 0; dim < 3; ++dim) {
      if (operand.type.sizes[dim] == Dim(1)) continue;
      const int64_t stride = strides[dim].constant();
      if (stride < 0 || stride % aligned_halves != 0) return false;
    }
    return true;
  }

  /// What was copied to make batch and heads one dim.
  [[nodiscard]] std::optional<Operand> in_front_of_copy(ValueId value, const std::vector<Dim>& sizes) const {
    while (is_reshape(graph_, value)) value = *graph_.producer(value).args[0].value();
    const Node& node = graph_.producer(value);
    const auto* call = node.as<Call>();
    if (call == nullptr || call->op != "aten::clone" || !graph_.type(value).is_contiguous()) return std::nullopt;
    const auto* source = node.args[0].value();
    if (source == nullptr || graph_.type(*source).sizes != sizes) return std::nullopt;
    return Operand{*source, graph_.type(*source)};
  }

  [[nodiscard]] Operand split(ValueId value, const std::vector<Dim>& sizes) const {
    Type type = graph_.type(value);
    const auto strides = type.strides;
    type.sizes = sizes;
    type.strides = {strides[0] * sizes[1].constant(), strides[0], strides[1], strides[2]};
    return {value, type};
  }

  const Graph& graph_;
  std::vector<uint32_t> uses_;
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
    const Arg mask = found.mask ? Arg{spoilt_rows(see(*found.mask, product), product)} : Arg{};
    const std::vector<Arg> args = {{see(found.query, product)},
                                   {see(found.key, product)},
                                   {see(found.values, product)},
                                   mask,
                                   {0.0},
                                   {false},
                                   {found.scale},
                                   {false}};
    Call call;
    call.op = "aten::scaled_dot_product_attention";
    const ValueId mixed =
        rewrite_.add(std::move(call), args, dense_like(found.query.type, found.query.type.sizes), product.scope);
    // As the product gave it; readers of this copy see the original where its order is theirs.
    const Type& wanted = rewrite_.old().type(product.results[0]);
    Type copied = contiguous(wanted.dtype, {s.batch, s.heads, s.queries, s.vector}, wanted.device);
    const ValueId copy = rewrite_.add(Primitive{op_named("cast")}, {{mixed}}, std::move(copied), product.scope);
    rewrite_.set(product.results[0], rewrite_.add(View{0}, {{copy}}, Type(wanted), product.scope));
  }

  /// The mask, of which rows that leave nothing, or take all, are NaN: what is infinite times 0 is.
  ValueId spoilt_rows(ValueId mask, const Node& product) {
    const Type& type = rewrite_.next().type(mask);
    std::vector<Dim> sizes = type.sizes;
    sizes.back() = 1;
    const Type by_row = contiguous(type.dtype, std::move(sizes), type.device);
    const Type whole = dense_like(type, type.sizes);
    Call call;
    call.op = "aten::amax";
    const ValueId greatest = rewrite_.add(std::move(call), {{mask}, {ArgList{{-1}}}, {true}}, by_row, product.scope);
    const ValueId spoilt = rewrite_.add(Primitive{op_named("mul")}, {{greatest}, {0.0}}, by_row, product.scope);
    return rewrite_.add(Primitive{op_named("add")}, {{mask}, {spoilt}}, whole, product.scope);
  }

  ValueId see(const Operand& operand, const Node& product) {
    return rewrite_.add(View{0}, {{rewrite_.get(operand.value)}}, Type(operand.type), product.scope);
  }

  Rewriter rewrite_;
  std::unordered_map<NodeId, Attention> found_;  ///< by the last product
};

}  // namespace

PassResult find_attention(Graph& graph, const PassContext& context) {
  if (context.device.backend != Backend::cuda || context.numerics != Numerics::fast) return {};
  AttentionBuilder builder(graph);
  if (builder.changes() == 0) return {};
  graph = builder.run();
  return {builder.changes()};
}

}  // namespace sinter::passes
