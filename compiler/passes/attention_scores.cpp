#include "compiler/passes/attention_scores.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "compiler/passes/aten.h"
#include "compiler/passes/attention_operands.h"
#include "compiler/passes/batched_product.h"

namespace sinter::passes {
namespace {

using namespace ir;

constexpr double nothing = -std::numeric_limits<double>::infinity();  ///< a score whose weight is 0

bool is_nothing(const Arg& arg) {
  const auto* number = std::get_if<double>(&arg.data);
  return number != nullptr && *number == nothing;
}

class Reader {
 public:
  Reader(const Graph& graph, std::span<const uint32_t> uses) : graph_(graph), uses_(uses) {}

  [[nodiscard]] std::optional<AttentionScores> behind(ValueId weights) const {
    auto value = unshaped(weights);
    if (const auto wide = value ? behind_rounding(*value) : std::nullopt) value = unshaped(*wide);
    if (!value) return std::nullopt;
    const Node& softmax = graph_.producer(*value);
    AttentionScores scores;
    scores.zeros = is_safe_softmax_of_rows(graph_, softmax);
    if (!scores.zeros && !is_softmax_of_rows(graph_, softmax)) return std::nullopt;
    scores.type = graph_.type(*value);
    const DType dtype = graph_.type(*softmax.args[0].value()).dtype;
    if (!is_half(dtype) && (dtype != DType::f32 || graph_.type(weights).dtype != DType::f32)) return std::nullopt;
    if (scores.type.rank() < 3 || scores.type.numel() == 0) return std::nullopt;
    value = take_masks(unshaped(*softmax.args[0].value()), scores.masks);
    value = take_factors(value, scores.scale);
    if (!value) return std::nullopt;
    scores.product = *value;
    const auto& own = graph_.type(*value).sizes;
    const auto are_scores = [&](const Type& type) {
      return type.rank() >= 3 && type.sizes[type.rank() - 2] == own[1] && type.sizes.back() == own[2];
    };
    const bool all = are_scores(scores.type) && std::ranges::all_of(scores.masks, are_scores, &ScoreMask::scores);
    return all ? std::optional(std::move(scores)) : std::nullopt;
  }

 private:
  [[nodiscard]] std::optional<ValueId> unshaped(ValueId value) const { return behind_reshapes(graph_, uses_, value); }

  /// A softmax of halves may be asked for in f32, and rounded then.
  [[nodiscard]] std::optional<ValueId> behind_rounding(ValueId value) const {
    const auto source = source_of(graph_, value, "aten::_to_copy");
    const bool rounds = source && graph_.type(value).is_contiguous() && graph_.type(*source).dtype == DType::f32;
    return rounds ? source : std::nullopt;
  }

  [[nodiscard]] std::optional<ValueId> take_masks(std::optional<ValueId> value, std::vector<ScoreMask>& masks) const {
    while (value) {
      const Node& node = graph_.producer(*value);
      const auto places = masked_at(node);
      if (!places) break;
      const ValueId *scores = node.args[places->scores].value(), *over = node.args[places->mask].value();
      if (scores == nullptr || over == nullptr || graph_.type(*scores).dtype != graph_.type(*value).dtype ||
          graph_.type(*scores).sizes != graph_.type(*value).sizes) {
        break;
      }
      if (places->masking != Masking::added && graph_.type(*over).dtype != DType::b8) break;
      masks.push_back({*over, places->masking, graph_.type(*value)});
      value = unshaped(*scores);
    }
    return value;
  }

  [[nodiscard]] std::optional<ValueId> take_factors(std::optional<ValueId> value, double& scale) const {
    while (value) {
      const Node& node = graph_.producer(*value);
      if (call_named(node, "aten::bmm", 2) != nullptr) break;
      const auto factor = factor_of(graph_, node);
      if (!factor) return std::nullopt;
      scale *= *factor;
      value = unshaped(*node.args[0].value());
    }
    return value;
  }

  /// Where a node has scores, which have the result's sizes, and what it lays over them.
  struct Places {
    size_t scores, mask;
    Masking masking;
  };
  /// A sum with a bias, or -inf in place of some scores; nothing where a node is neither.
  [[nodiscard]] static std::optional<Places> masked_at(const Node& node) {
    const auto* call = node.as<Call>();
    if (call == nullptr || node.args.size() != 3) return std::nullopt;
    if (call->op == "aten::add.Tensor" && node.args[2] == Arg{int64_t{1}}) return Places{0, 1, Masking::added};
    if (call->op == "aten::masked_fill.Scalar" && is_nothing(node.args[2])) return Places{0, 1, Masking::hidden_where};
    if (call->op != "aten::where.self") return std::nullopt;
    if (is_nothing(node.args[2])) return Places{1, 0, Masking::shown_where};
    return is_nothing(node.args[1]) ? std::optional(Places{2, 0, Masking::hidden_where}) : std::nullopt;
  }

  const Graph& graph_;
  std::span<const uint32_t> uses_;
};

}  // namespace

std::optional<AttentionScores> scores_behind(const Graph& graph, std::span<const uint32_t> uses, ValueId weights) {
  return Reader(graph, uses).behind(weights);
}

ValueId add_hiding_bias(Rewriter& rewrite, ValueId truth, Masking masking, Type type, ScopeId scope) {
  const bool hides = masking == Masking::hidden_where;
  std::vector<Arg> args = {{truth}, {hides ? nothing : 0.0}, {hides ? 0.0 : nothing}};
  return rewrite.add(Primitive{op_named("where")}, std::move(args), std::move(type), scope);
}

}  // namespace sinter::passes
