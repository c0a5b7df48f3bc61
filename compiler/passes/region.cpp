#include "compiler/passes/region.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/index.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// Follows every read of a region back from its outputs, as the kernel's lowering will.
class ReadWalk {
 public:
  ReadWalk(const Graph& graph, const std::vector<NodeId>& members, std::vector<int64_t> extents)
      : graph_(graph), members_(members.begin(), members.end()), extents_(std::move(extents)) {}

  /// `map` gives the index of each dim of the value in terms of the loop nest.
  bool visit(ValueId value, const std::vector<Index>& map) {
    auto& seen = visited_[value];
    if (std::find(seen.begin(), seen.end(), map) != seen.end()) return true;
    seen.push_back(map);
    if (++instructions_ > max_region_instructions) return false;
    for (const Arg& arg : graph_.producer(value).args) {
      if (arg.value() != nullptr && !visit_operand(*arg.value(), graph_.type(value), map)) return false;
    }
    return true;
  }

  [[nodiscard]] size_t params() const { return params_.size(); }

 private:
  bool visit_operand(ValueId operand, const Type& user, const std::vector<Index>& user_map) {
    const Type& type = graph_.type(operand);
    const ViewSource source = region_operand(graph_, operand);
    const auto map = substitute(broadcast_map(type.static_sizes(), user.static_sizes()), user_map);
    if (!map) return false;
    if (!members_.contains(graph_.value(source.base).producer)) {
      params_.insert(source.base);
      return compose(storage_index(type), *map, extents_).has_value();
    }
    if (!source.is_view) return visit(source.base, *map);
    const auto through = view_map(graph_.type(source.base), type, source.offset);
    if (!through) return false;
    const auto base_map = substitute(*through, *map);
    return base_map && visit(source.base, *base_map);
  }

  std::optional<std::vector<Index>> substitute(const std::vector<Index>& outer, const std::vector<Index>& dims) const {
    std::vector<Index> result;
    for (const Index& index : outer) {
      auto composed = compose(index, dims, extents_);
      if (!composed) return std::nullopt;
      composed->affine.strides.resize(extents_.size(), 0);
      for (QuasiTerm& term : composed->terms) term.inner.strides.resize(extents_.size(), 0);
      result.push_back(*std::move(composed));
    }
    return result;
  }

  const Graph& graph_;
  std::unordered_set<NodeId> members_;
  std::vector<int64_t> extents_;
  std::unordered_map<ValueId, std::vector<std::vector<Index>>> visited_;
  std::unordered_set<ValueId> params_;
  size_t instructions_ = 0;
};

struct LoopNest {
  std::vector<int64_t> extents;
  std::vector<Index> points;  ///< each dim of the output over the loops
};

/// Loops over a tensor in the order of its strides, without dims of size 1: the nest a kernel gets.
LoopNest loop_nest(const Type& type) {
  const auto sizes = type.static_sizes();
  const auto strides = type.static_strides();
  std::vector<size_t> order;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] != 1) order.push_back(d);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  LoopNest nest;
  Index zero;
  zero.affine.strides.assign(order.size(), 0);
  nest.points.assign(sizes.size(), zero);
  for (size_t loop = 0; loop < order.size(); ++loop) {
    nest.extents.push_back(sizes[order[loop]]);
    nest.points[order[loop]].affine.strides[loop] = 1;
  }
  return nest;
}

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
    result_.scope = region_scope();
    result_.body = std::make_shared<const Graph>(std::move(body_));
    return std::move(result_);
  }

 private:
  void add_inputs() {
    for (NodeId id : members_) {
      for (const Arg& arg : graph_.node(id).args) {
        if (arg.value() == nullptr) continue;
        const ValueId base = region_operand(graph_, *arg.value()).base;
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
    const ViewSource source = region_operand(graph_, value);
    const ValueId view = body_.add1(View{source.offset}, {{made_.at(source.base)}}, graph_.type(value), scope);
    made_[value] = view;
    return view;
  }

  [[nodiscard]] std::string region_name() const {
    constexpr size_t most = 6;
    std::vector<std::string_view> names;
    for (NodeId id : members_) {
      const std::string_view name = row(graph_.node(id).as<Primitive>()->op).name;
      if (name != "cast") names.push_back(name);
    }
    if (names.empty()) return "fused_cast";
    std::string text = "fused";
    for (size_t i = 0; i < std::min(most, names.size()); ++i) text += "_" + std::string(names[i]);
    return text;
  }

  [[nodiscard]] Scope region_scope() const {
    std::vector<std::string> modules;
    std::vector<std::string> sources;
    const auto add = [](std::vector<std::string>& list, const std::string& text) {
      if (!text.empty() && std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
    };
    for (NodeId id : members_) {
      if (!graph_.node(id).scope.valid()) continue;
      add(modules, graph_.scope(graph_.node(id).scope).module);
      add(sources, graph_.scope(graph_.node(id).scope).source);
    }
    const auto join = [](const std::vector<std::string>& list) {
      std::string text;
      for (const std::string& item : list) text += (text.empty() ? "" : ", ") + item;
      return text;
    };
    return {join(modules), join(sources)};
  }

  const Graph& graph_;
  const std::vector<NodeId>& members_;
  std::unordered_set<NodeId> inside_;
  std::unordered_map<ValueId, ValueId> made_;
  Graph body_;
  RegionBody result_;
};

}  // namespace

ViewSource region_operand(const Graph& graph, ValueId operand) {
  if (graph.type(operand).device != graph.device) return {operand, 0, false};
  return view_source(graph, operand);
}

bool can_lower(const Graph& graph, const std::vector<NodeId>& members, const std::vector<ValueId>& outputs) {
  if (outputs.empty()) return false;
  const Type& first = graph.type(outputs[0]);
  const LoopNest nest = loop_nest(first);
  ReadWalk walk(graph, members, nest.extents);
  for (ValueId output : outputs) {
    if (graph.type(output).sizes != first.sizes) return false;
    if (first.numel() > 0 && !walk.visit(output, nest.points)) return false;
  }
  return walk.params() + outputs.size() <= max_region_params;
}

RegionBody make_body(const Graph& graph, const std::vector<NodeId>& members, const std::vector<ValueId>& outputs) {
  return BodyBuilder(graph, members).build(outputs);
}

}  // namespace sinter::passes
