#include "compiler/passes/region.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/kernel/region.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// Builds the body graph of one region.
class BodyBuilder {
 public:
  BodyBuilder(const Graph& graph, const std::vector<NodeId>& members) : graph_(graph), members_(members) {
    body_.device = graph.device;
    for (NodeId id : members_) inside_.insert(id);
  }

  RegionBody build(const std::vector<ValueId>& outputs) {
    add_inputs();
    for (NodeId id : members_) add_member(id);
    for (ValueId output : outputs) body_.outputs.push_back(made_.at(output));
    result_.name = region_name();
    body_.name = result_.name;
    result_.scope = joined_scope(graph_, members_);
    result_.body = std::make_shared<const Graph>(std::move(body_));
    return std::move(result_);
  }

 private:
  void add_inputs() {
    for (NodeId id : members_) {
      for (const Arg& arg : graph_.node(id).args) {
        if (arg.value() == nullptr) continue;
        const ValueId base = kernel::region_operand(graph_, *arg.value()).base;
        if (inside_.contains(graph_.value(base).producer) || made_.contains(base)) continue;
        made_[base] = body_.add1(Input{static_cast<uint32_t>(result_.args.size())}, {}, graph_.type(base));
        result_.args.push_back(base);
      }
    }
  }

  void add_member(NodeId id) {
    const Node& node = graph_.node(id);
    const ScopeId scope = node.scope.valid() ? body_.scope(graph_.scope(node.scope)) : ScopeId{};
    std::vector<Arg> args = node.args;
    for (Arg& arg : args) {
      if (arg.value() != nullptr) arg.data = operand(*arg.value(), scope);
    }
    const ValueId made = body_.add1(node.payload, std::move(args), graph_.type(node.results[0]), scope);
    body_.value(made).hint = graph_.value(node.results[0]).hint;
    made_[node.results[0]] = made;
  }

  ValueId operand(ValueId value, ScopeId scope) {
    const auto known = made_.find(value);
    if (known != made_.end()) return known->second;
    const ViewSource source = kernel::region_operand(graph_, value);
    const ValueId view = body_.add1(View{source.offset}, {{made_.at(source.base)}}, graph_.type(value), scope);
    made_[value] = view;
    return view;
  }

  [[nodiscard]] std::string region_name() const {
    constexpr size_t most = 6;
    std::vector<std::string_view> names;
    for (NodeId id : members_) {
      const std::string_view name = computed_name(graph_.node(id));
      if (name != "cast") names.push_back(name);
    }
    if (names.empty()) return "fused_cast";
    std::string text = "fused";
    for (size_t i = 0; i < std::min(most, names.size()); ++i) text += "_" + std::string(names[i]);
    return text;
  }

  const Graph& graph_;
  const std::vector<NodeId>& members_;
  std::unordered_set<NodeId> inside_;
  std::unordered_map<ValueId, ValueId> made_;
  Graph body_;
  RegionBody result_;
};

}  // namespace

Scope joined_scope(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::vector<std::string> modules;
  std::vector<std::string> sources;
  const auto add = [](std::vector<std::string>& list, const std::string& text) {
    if (!text.empty() && std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
  };
  for (NodeId id : nodes) {
    if (!graph.node(id).scope.valid()) continue;
    add(modules, graph.scope(graph.node(id).scope).module);
    add(sources, graph.scope(graph.node(id).scope).source);
  }
  const auto join = [](const std::vector<std::string>& list) {
    std::string text;
    for (const std::string& item : list) text += (text.empty() ? "" : ", ") + item;
    return text;
  };
  return {join(modules), join(sources)};
}

RegionBody make_body(const Graph& graph, const std::vector<NodeId>& members, const std::vector<ValueId>& outputs) {
  return BodyBuilder(graph, members).build(outputs);
}

}  // namespace sinter::passes
