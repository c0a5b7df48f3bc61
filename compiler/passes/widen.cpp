#include "compiler/passes/widen.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "compiler/ir/continuous.h"
#include "compiler/ir/view_source.h"
#include "compiler/passes/bodies.h"
#include "compiler/passes/shared_values.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// One fused body.
class Widening {
 public:
  Widening(Graph& body, const std::vector<bool>& shared)
      : body_(body),
        shared_(shared),
        stored_(body.value_count(), false),
        decides_(body.value_count(), false),
        users_(body.value_count()) {
    for (const ValueId output : body_.outputs) stored_[output.index] = true;
    for (const NodeId id : body_.order()) {
      const Node& node = body_.node(id);
      for (const Arg& arg : node.args) for_each_value(arg, [&](ValueId value) { users_[value.index].push_back(id); });
    }
    find_stored();
    find_deciding();
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

  /// Marks what a jump depends on, through any arithmetic.
  void find_deciding() {
    for (auto id = body_.order().rbegin(); id != body_.order().rend(); ++id) {
      const Node& node = body_.node(*id);
      if (node.results.empty()) continue;
      const bool jumps = is_jump(node);
      for (const Arg& arg : node.args) {
        for_each_value(arg, [&](ValueId value) {
          decides_[value.index] = decides_[value.index] || jumps || decides_[node.results[0].index];
        });
      }
    }
  }

  /// Reductions are as continuous as what joins their elements: all are.
  [[nodiscard]] bool is_jump(const Node& node) const {
    const auto* primitive = node.as<Primitive>();
    if (primitive == nullptr) return false;
    return is_cast(node) ? !is_float(dtype(node.results[0])) : !is_continuous(primitive->op);
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
  std::vector<bool> decides_;        ///< by value
  std::vector<std::vector<NodeId>> users_;
  std::unordered_map<ValueId, ValueId> replacements_;
};

}  // namespace

PassResult widen(Graph& graph, const PassContext& context) {
  if (context.numerics != Numerics::fast) return {};
  const auto shared = shared_values(graph);
  size_t next = 0;
  return {rewrite_bodies(graph, [&](Graph& body) { return Widening(body, shared[next++]).run(); })};
}

}  // namespace sinter::passes
