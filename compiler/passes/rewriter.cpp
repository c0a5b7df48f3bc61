#include "compiler/passes/rewriter.h"

#include "compiler/support/errors.h"

namespace sinter::passes {

Rewriter::Rewriter(const ir::Graph& old) : old_(old), map_(old.value_count()), scopes_(old.scopes().size()) {
  next_.name = old.name;
  next_.device = old.device;
}

void Rewriter::set(ir::ValueId old_value, ir::ValueId new_value) {
  map_[old_value.index] = new_value;
  std::string& hint = next_.value(new_value).hint;
  if (hint.empty()) hint = old_.value(old_value).hint;
}

std::vector<ir::Arg> Rewriter::map_args(const std::vector<ir::Arg>& args) const {
  std::vector<ir::Arg> mapped = args;
  for (ir::Arg& arg : mapped) {
    ir::for_each_value(arg, [&](ir::ValueId& value) {
      value = get(value);
      if (!value.valid()) throw InternalError("rewrite", "a value is used before it is defined");
    });
  }
  return mapped;
}

ir::ScopeId Rewriter::map_scope(ir::ScopeId old_scope) {
  if (!old_scope.valid()) return {};
  ir::ScopeId& scope = scopes_[old_scope.index];
  if (!scope.valid()) scope = next_.scope(old_.scope(old_scope));
  return scope;
}

ir::NodeId Rewriter::copy(ir::NodeId old_node) {
  const ir::Node& node = old_.node(old_node);
  std::vector<ir::Type> types;
  for (ir::ValueId result : node.results) types.push_back(old_.type(result));
  const ir::NodeId id = next_.add(node.payload, map_args(node.args), std::move(types), map_scope(node.scope));
  for (size_t i = 0; i < node.results.size(); ++i) {
    const ir::ValueId result = next_.node(id).results[i];
    set(node.results[i], result);
    next_.value(result).alignment = old_.value(node.results[i]).alignment;
    if (const auto& alias = old_.value(node.results[i]).alias; alias && get(alias->base).valid()) {
      next_.value(result).alias = ir::Alias{get(alias->base), alias->offset};
    }
  }
  return id;
}

ir::ValueId Rewriter::add(ir::Payload payload, std::vector<ir::Arg> args, ir::Type type, ir::ScopeId old_scope) {
  return next_.add1(std::move(payload), std::move(args), std::move(type), map_scope(old_scope));
}

ir::Graph Rewriter::finish() {
  for (ir::ValueId output : old_.outputs) next_.outputs.push_back(get(output));
  return std::move(next_);
}

PassResult rewrite_nodes(ir::Graph& graph, const NodeRewrite& rewrite_node) {
  PassResult result;
  Rewriter rewrite(graph);
  for (const ir::NodeId id : graph.order()) {
    if (rewrite_node(rewrite, graph.node(id))) {
      ++result.changes;
    } else {
      rewrite.copy(id);
    }
  }
  if (result.changes == 0) return result;
  ir::Graph next = rewrite.finish();
  graph = std::move(next);
  return result;
}

PassResult rewrite_first_results(ir::Graph& graph, const StandIn& stand_in) {
  return rewrite_nodes(graph, [&](Rewriter& rewrite, const ir::Node& node) {
    const auto found = stand_in(rewrite, node);
    if (found) rewrite.set(node.results[0], *found);
    return found.has_value();
  });
}

}  // namespace sinter::passes
