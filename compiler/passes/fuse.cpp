#include "compiler/passes/fuse.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/passes/fuse_groups.h"
#include "compiler/passes/region.h"
#include "compiler/passes/rewriter.h"
#include "compiler/passes/schedule.h"
#include "compiler/passes/spread.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// Builds the fused graph from the groups, unit by unit.
class Emitter {
 public:
  Emitter(const Graph& graph, const FuseGroups& groups) : graph_(graph), groups_(groups), rewrite_(graph) {}

  Graph run() {
    for (NodeId id : unit_order(graph_, groups_.leaders())) {
      if (is_computed(graph_.node(id))) {
        const std::vector<NodeId> members = groups_.members(id);
        emit_region(members, groups_.outputs(members));
      } else if (const Node& node = graph_.node(id); node.as<Attention>() != nullptr) {
        emit_region({id}, node.results);
      } else {
        for (const Arg& arg : graph_.node(id).args) for_each_value(arg, [&](ValueId value) { materialize(value); });
        rewrite_.copy(id);
      }
    }
    for (ValueId output : graph_.outputs) materialize(output);
    return rewrite_.finish();
  }

 private:
  /// Makes a view exist as a node of its own, where somebody outside a region uses it.
  void materialize(ValueId value) {
    if (rewrite_.get(value).valid()) return;
    const NodeId view = graph_.value(value).producer;
    materialize(*graph_.node(view).args[0].value());
    rewrite_.copy(view);
  }

  void emit_region(const std::vector<NodeId>& members, const std::vector<ValueId>& outputs) {
    if (outputs.empty()) return;
    if (members.size() == 1 && is_long_join(graph_.node(members[0]))) return emit_call(graph_.node(members[0]));
    RegionBody region = make_body(graph_, members, outputs);
    std::vector<Arg> args;
    for (ValueId arg : region.args) {
      materialize(arg);
      args.push_back({rewrite_.get(arg)});
    }
    std::vector<Type> types;
    for (ValueId output : outputs) types.push_back(graph_.type(output));
    Graph& next = rewrite_.next();
    const NodeId made = next.add(Fused{region.name, region.body}, std::move(args), std::move(types),
                                 next.scope(std::move(region.scope)));
    for (size_t i = 0; i < outputs.size(); ++i) rewrite_.set(outputs[i], next.node(made).results[i]);
  }

  [[nodiscard]] bool is_long_join(const Node& node) const {
    return node.as<Join>() != nullptr && node.args.size() > most_joined_at_points &&
           graph_.type(node.results[0]).is_contiguous();
  }

  /// A join that no region took in.
  void emit_call(const Node& join) {
    ArgList parts;
    for (const Arg& arg : join.args) {
      materialize(*arg.value());
      parts.push_back({rewrite_.get(*arg.value())});
    }
    Call call;
    call.op = "aten::cat";
    const std::vector<Arg> args = {{std::move(parts)}, {int64_t{join.as<Join>()->dim}}};
    rewrite_.set(join.results[0], rewrite_.add(std::move(call), args, Type(graph_.type(join.results[0])), join.scope));
  }

  const Graph& graph_;
  const FuseGroups& groups_;
  Rewriter rewrite_;
};

}  // namespace

PassResult fuse(Graph& graph, const PassContext& context) {
  spread_cheap(graph, context.freeze);
  FuseGroups groups(graph, context.freeze, context.generic_sizes);
  const int64_t merges = groups.merge_all();
  Graph next = Emitter(graph, groups).run();
  graph = std::move(next);
  return {merges};
}

}  // namespace sinter::passes
