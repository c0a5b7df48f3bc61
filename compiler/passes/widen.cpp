#include "compiler/passes/widen.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "compiler/ir/view_source.h"
#include "compiler/passes/bodies.h"
#include "compiler/passes/deciding.h"
#include "compiler/passes/shared_values.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// One fused body.
class Widening {
 public:
  /// By output, `deciding` says what decides in other kernels.
  Widening(Graph& body, const std::vector<bool>& shared, const std::vector<bool>& deciding)
      : body_(body),
        shared_(shared),
        stored_(body.value_count(), false),
        decides_(deciding_values_of_body(body, deciding)),
        users_(body.value_count()) {
    for (const ValueId output : body_.outputs) stored_[output.index] = true;
    for (const NodeId id : body_.order()) {
      const Node& node = body_.node(id);
      for (const Arg& arg : node.args) for_each_value(arg, [&](ValueId value) { users_[value.index].push_back(id); });
    }
    find_stored();
  }

  int64_t run() {
    int64_t changes = 0;
    for (const NodeId id : body_.order()) {
      Node& node = body_.node(id);
      if (!may_stay_wide(node.results[0])) continue;
      const ValueId wide = newest(*node.args[0].value());
      for (const NodeId user : users_[node.results[0].index]) take(body_.node(user), wide);
      ++changes;
    }
    replace_uses(body_, replacements_);
    return changes;
  }

 private:
  [[nodiscard]] ValueId newest(ValueId value) const {
    const auto found = replacements_.find(value);
    return found == replacements_.end() ? value : found->second;
  }

  /// Gives a cast back to f32 the wide value, which stands for its result where both lie alike.
  void take(Node& back, ValueId wide) {
    back.args[0].data = wide;
    if (body_.type(back.results[0]) == body_.type(wide)) replacements_[back.results[0]] = wide;
  }

  [[nodiscard]] bool is_cast(const Node& node) const {
    const auto* primitive = node.as<Primitive>();
    return primitive != nullptr && row(primitive->op).rule == TypeRule::cast;
  }
  [[nodiscard]] DType dtype(ValueId value) const { return body_.type(value).dtype; }

  /// What a join or a view of memory passes on is stored as it is.
  void find_stored() {
    for (auto id = body_.order().rbegin(); id != body_.order().rend(); ++id) {
      const Node& node = body_.node(*id);
      const bool passes_on = node.as<Join>() != nullptr || node.as<View>() != nullptr;
      if (!passes_on || !stored_[node.results[0].index]) continue;
      for (const Arg& arg : node.args) for_each_value(arg, [&](ValueId value) { stored_[value.index] = true; });
    }
  }

  /// A computed f32, or a sum or an extreme of some, rounded to a half that every user takes back to f32.
  [[nodiscard]] bool may_stay_wide(ValueId value) const {
    const Node& node = body_.producer(value);
    if (!is_half(dtype(value)) || !is_cast(node) || node.args[0].value() == nullptr) return false;
    const ValueId wide = *node.args[0].value();
    const bool computed = dtype(wide) == DType::f32 && is_computed(body_.producer(view_source(body_, wide).base));
    if (!computed || shared_[value.index] || stored_[value.index] || decides_[value.index]) return false;
    return std::ranges::all_of(users_[value.index], [&](NodeId user) {
      const Node& back = body_.node(user);
      return is_cast(back) && dtype(back.results[0]) == DType::f32 && !stored_[back.results[0].index];
    });
  }

  Graph& body_;
  const std::vector<bool>& shared_;  ///< by value: other kernels compute it too
  std::vector<bool> stored_;         ///< by value
  std::vector<bool> decides_;        ///< by value: a jump depends on it
  std::vector<std::vector<NodeId>> users_;
  std::unordered_map<ValueId, ValueId> replacements_;
};

/// By fused node in order, then by result.
std::vector<std::vector<bool>> results_that_decide(const Graph& graph) {
  const std::vector<bool> deciding = deciding_values(graph);
  std::vector<std::vector<bool>> results;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.as<Fused>() != nullptr) results.push_back(deciding_results(node, deciding));
  }
  return results;
}

}  // namespace

PassResult widen(Graph& graph, const PassContext& context) {
  if (context.numerics != Numerics::fast) return {};
  const auto shared = shared_values(graph);
  const auto deciding = results_that_decide(graph);
  size_t next = 0;
  return {rewrite_bodies(graph, [&](Graph& body) {
    const size_t fused = next++;
    return Widening(body, shared[fused], deciding[fused]).run();
  })};
}

}  // namespace sinter::passes
