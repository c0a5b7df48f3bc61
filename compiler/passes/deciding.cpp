#include "compiler/passes/deciding.h"

#include "compiler/ir/continuous.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// Reductions are as continuous as what joins their elements: all are.
bool is_jump(const Graph& body, const Node& node) {
  const auto* primitive = node.as<Primitive>();
  if (primitive == nullptr) return false;
  const bool is_cast = row(primitive->op).rule == TypeRule::cast;
  return is_cast ? !is_float(body.type(node.results[0]).dtype) : !is_continuous(primitive->op);
}

void mark(const Arg& arg, std::vector<bool>& deciding) {
  for_each_value(arg, [&](ValueId value) { deciding[value.index] = true; });
}

/// What of a fused node's args decides.
void mark_args(const Node& node, std::vector<bool>& deciding) {
  const Graph& body = *node.as<Fused>()->body;
  const std::vector<bool> inside = deciding_values_of_body(body, deciding_results(node, deciding));
  for (const NodeId id : body.order()) {
    const auto* input = body.node(id).as<Input>();
    if (input != nullptr && inside[body.node(id).results[0].index]) mark(node.args[input->index], deciding);
  }
}

}  // namespace

std::vector<bool> deciding_values_of_body(const Graph& body, const std::vector<bool>& outputs) {
  std::vector<bool> deciding(body.value_count(), false);
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    if (outputs[i]) deciding[body.outputs[i].index] = true;
  }
  for (auto id = body.order().rbegin(); id != body.order().rend(); ++id) {
    const Node& node = body.node(*id);
    if (node.results.empty() || (!is_jump(body, node) && !deciding[node.results[0].index])) continue;
    for (const Arg& arg : node.args) mark(arg, deciding);
  }
  return deciding;
}

std::vector<bool> deciding_results(const Node& node, const std::vector<bool>& deciding) {
  std::vector<bool> results;
  for (const ValueId result : node.results) results.push_back(deciding[result.index]);
  return results;
}

std::vector<bool> deciding_values(const Graph& graph) {
  std::vector<bool> deciding(graph.value_count(), false);
  for (auto id = graph.order().rbegin(); id != graph.order().rend(); ++id) {
    const Node& node = graph.node(*id);
    if (node.as<Fused>() != nullptr) {
      mark_args(node, deciding);
    } else if (node.as<View>() != nullptr && deciding[node.results[0].index]) {
      mark(node.args[0], deciding);
    }
  }
  return deciding;
}

}  // namespace sinter::passes
