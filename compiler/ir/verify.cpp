#include "compiler/ir/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/ir/print.h"
#include "compiler/ir/verify_nodes.h"
#include "compiler/support/errors.h"

namespace sinter::ir {
namespace {

/// Where the nodes under check stand.
enum class Place : uint8_t { captured, functional, fused, body };

class Verifier {
 public:
  Verifier(const Graph& graph, Place place) : graph_(graph), place_(place) {}

  std::vector<std::string> run() && {
    if (!ids_exist()) return {"the order or a node's results name what does not exist"};
    defined_.assign(graph_.value_count(), false);
    for (NodeId id : graph_.order()) node(id);
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      if (!is_defined(graph_.outputs[i]))
        problem(fmt::format("output {}: {} is not defined", i, name_of(graph_.outputs[i])));
    }
    return std::move(problems_);
  }

 private:
  [[nodiscard]] bool ids_exist() const {
    const auto value_exists = [&](ValueId value) { return value.index < graph_.value_count(); };
    return std::all_of(graph_.order().begin(), graph_.order().end(), [&](NodeId id) {
      if (id.index >= graph_.node_count()) return false;
      const std::vector<ValueId>& results = graph_.node(id).results;
      return std::all_of(results.begin(), results.end(), value_exists);
    });
  }

  void node(NodeId id) {
    if (!visited_.insert(id.index).second) return problem(fmt::format("node {} stands in the order twice", id.index));
    const Node& current = graph_.node(id);
    const size_t before = problems_.size();
    if (current.scope.valid() && current.scope.index >= graph_.scopes().size()) at(current, "its scope does not exist");
    for (const Arg& arg : current.args) for_each_value(arg, [&](ValueId value) { use(current, value); });
    for (ValueId value : current.results) define(id, value);
    if (problems_.size() == before) std::visit([&](const auto& payload) { check(payload, current); }, current.payload);
  }

  [[nodiscard]] bool is_defined(ValueId value) const { return value.index < defined_.size() && defined_[value.index]; }
  [[nodiscard]] std::string name_of(ValueId value) {
    if (names_.empty()) names_ = value_names(graph_);
    return value.index < names_.size() ? names_[value.index] : "a value that does not exist";
  }

  void use(const Node& node, ValueId value) {
    if (!is_defined(value)) at(node, fmt::format("{} is used before it is defined", name_of(value)));
  }

  void define(NodeId id, ValueId value) {
    const Node& node = graph_.node(id);
    const Value& result = graph_.value(value);
    if (result.producer != id) at(node, fmt::format("{} names another producer", name_of(value)));
    if (const auto wrong = type_problem(result.type)) at(node, *wrong);
    if (result.alias) alias(node, *result.alias);
    defined_[value.index] = true;
  }

  void alias(const Node& node, const Alias& alias) {
    const bool look = node.as<Call>() != nullptr && place_ != Place::body;  // no view node can describe it
    if (place_ != Place::captured && !look) return at(node, "an alias outside the captured stage");
    if (!is_defined(alias.base))
      return at(node, fmt::format("its alias {} is not defined before it", name_of(alias.base)));
    if (graph_.value(alias.base).alias) at(node, fmt::format("its alias {} is itself an alias", name_of(alias.base)));
  }

  void check(const Input& input, const Node& node) { leaf(node, "input", input.index, inputs_); }
  void check(const State& state, const Node& node) {
    leaf(node, "state", state.index, states_);
    if (place_ == Place::body) at(node, "state inside a fused body");
  }

  void leaf(const Node& node, std::string_view what, uint32_t index, std::set<uint32_t>& seen) {
    if (!node.args.empty()) at(node, fmt::format("{} {} has args", what, index));
    if (node.results.size() != 1) at(node, fmt::format("{} {} has {} results", what, index, node.results.size()));
    if (!seen.insert(index).second) at(node, fmt::format("{} {} stands here twice", what, index));
  }

  void check(const Call& call, const Node& node) {
    if (call.op.find("::") == std::string::npos) at(node, fmt::format("op '{}' has no namespace", call.op));
    if (place_ == Place::body) return at(node, fmt::format("call {} inside a fused body", call.op));
    if (place_ != Place::captured && !call.mutates.empty()) {
      return at(node, fmt::format("call {} mutates an argument outside the captured stage", call.op));
    }
    for (uint32_t position : call.mutates) {
      const bool holds_value =
          position < node.args.size() && (node.args[position].value() || node.args[position].list());
      if (!holds_value) at(node, fmt::format("call {} mutates argument {}, which is no value", call.op, position));
    }
  }

  void check(const Primitive&, const Node& node) {
    if (place_ == Place::captured) return at(node, "a primitive in the captured stage");
    if (place_ == Place::fused) return at(node, "a primitive outside a fused node");
    if (const auto wrong = primitive_problem(graph_, node)) at(node, *wrong);
  }

  void check(const Reduce&, const Node& node) {
    if (place_ == Place::captured) return at(node, "a reduction in the captured stage");
    if (place_ == Place::fused) return at(node, "a reduction outside a fused node");
    if (const auto wrong = reduce_problem(graph_, node)) at(node, *wrong);
  }

  void check(const Join&, const Node& node) {
    if (place_ == Place::captured) return at(node, "a join in the captured stage");
    if (place_ == Place::fused) return at(node, "a join outside a fused node");
    if (const auto wrong = join_problem(graph_, node)) at(node, *wrong);
  }

  void check(const Gather&, const Node& node) {
    if (place_ == Place::captured) return at(node, "a gather in the captured stage");
    if (place_ == Place::fused) return at(node, "a gather outside a fused node");
    if (const auto wrong = gather_problem(graph_, node)) at(node, *wrong);
  }

  void check(const Attention&, const Node& node) {
    if (place_ == Place::captured) return at(node, "an attention in the captured stage");
    if (place_ == Place::fused) return at(node, "an attention outside a fused node");
    if (const auto wrong = attention_problem(graph_, node)) at(node, *wrong);
  }

  void check(const Position&, const Node& node) {
    if (place_ == Place::captured) return at(node, "a position in the captured stage");
    if (place_ == Place::fused) return at(node, "a position outside a fused node");
    if (const auto wrong = position_problem(graph_, node)) at(node, *wrong);
  }

  void check(const View&, const Node& node) {
    if (place_ == Place::captured) return at(node, "a view node in the captured stage");
    if (const auto wrong = view_problem(graph_, node)) at(node, *wrong);
  }

  void check(const Fused& fused, const Node& node) {
    if (place_ != Place::fused) return at(node, fmt::format("{} stands outside the fused stage", fused.name));
    const size_t before = problems_.size();
    if (fused.body != nullptr) {
      for (const std::string& inner : Verifier(*fused.body, Place::body).run())
        at(node, fmt::format("{}: {}", fused.name, inner));
    }
    if (problems_.size() != before) return;
    if (const auto wrong = fused_problem(graph_, node)) at(node, *wrong);
  }

  void check(const Write&, const Node& node) {
    if (place_ != Place::functional && place_ != Place::fused) return at(node, "a write outside a functional graph");
    if (const auto wrong = write_problem(graph_, node)) return at(node, *wrong);
    if (!written_.insert(node.args[0].value()->index).second) {
      at(node, fmt::format("{} is written twice", name_of(*node.args[0].value())));
    }
  }

  void at(const Node& node, const std::string& what) {
    if (node.results.empty()) {
      const auto* call = node.as<Call>();
      const auto other = node.as<Write>() != nullptr ? "write" : "a node without results";
      return problem(fmt::format("{}: {}", call != nullptr ? call->op : other, what));
    }
    problem(fmt::format("{}: {}", name_of(node.results[0]), what));
  }

  void problem(std::string text) { problems_.push_back(std::move(text)); }

  const Graph& graph_;
  Place place_;
  std::vector<std::string> names_;  ///< made when a problem is first told
  std::vector<bool> defined_;
  std::set<uint32_t> visited_, inputs_, states_, written_;
  std::vector<std::string> problems_;
};

Place place_of(Stage stage) {
  switch (stage) {
    case Stage::captured:
      return Place::captured;
    case Stage::functional:
      return Place::functional;
    case Stage::fused:
      return Place::fused;
  }
  return Place::captured;
}

}  // namespace

std::string_view name(Stage stage) {
  switch (stage) {
    case Stage::captured:
      return "captured";
    case Stage::functional:
      return "functional";
    case Stage::fused:
      return "fused";
  }
  return "captured";
}

std::vector<std::string> verify(const Graph& graph, Stage stage) { return Verifier(graph, place_of(stage)).run(); }

void require(const Graph& graph, Stage stage, std::string_view pass) {
  const std::vector<std::string> problems = verify(graph, stage);
  if (problems.empty()) return;
  throw InternalError(std::string(pass),
                      fmt::format("graph @{} is not {}: {}", graph.name, name(stage), fmt::join(problems, "; ")));
}

}  // namespace sinter::ir
