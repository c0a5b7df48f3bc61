#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Builds a new graph from an old one, node by node, keeping scopes and names of values.
class Rewriter {
 public:
  explicit Rewriter(const ir::Graph& old);

  [[nodiscard]] const ir::Graph& old() const { return old_; }
  [[nodiscard]] ir::Graph& next() { return next_; }
  [[nodiscard]] const ir::Graph& next() const { return next_; }

  /// What stands for a value of the old graph.
  [[nodiscard]] ir::ValueId get(ir::ValueId old_value) const { return map_[old_value.index]; }
  /// From here on, `new_value` stands for `old_value`; it takes over the name if it has none.
  void set(ir::ValueId old_value, ir::ValueId new_value);

  [[nodiscard]] std::vector<ir::Arg> map_args(const std::vector<ir::Arg>& args) const;
  [[nodiscard]] ir::ScopeId map_scope(ir::ScopeId old_scope);

  /// Copies a node of the old graph, with its args as they stand now.
  ir::NodeId copy(ir::NodeId old_node);
  /// Adds a node with one result, in the scope of a node of the old graph.
  ir::ValueId add(ir::Payload payload, std::vector<ir::Arg> args, ir::Type type, ir::ScopeId old_scope);

  /// Maps the outputs and hands the new graph over.
  [[nodiscard]] ir::Graph finish();

 private:
  const ir::Graph& old_;
  ir::Graph next_;
  std::vector<ir::ValueId> map_;
  std::vector<ir::ScopeId> scopes_;
};

/// Adds to the new graph what stands for the results of a node of the old one; false where the node stays.
using NodeRewrite = std::function<bool(Rewriter&, const ir::Node&)>;

/// Rewrites a graph node by node. It stays as it is where every node does.
PassResult rewrite_nodes(ir::Graph& graph, const NodeRewrite& rewrite_node);

/// Adds to the new graph what stands for the first result of a node of the old one; nothing where the node stays.
using StandIn = std::function<std::optional<ir::ValueId>(Rewriter&, const ir::Node&)>;

/// The same for nodes of which the first result alone is read.
PassResult rewrite_first_results(ir::Graph& graph, const StandIn& stand_in);

}  // namespace sinter::passes
