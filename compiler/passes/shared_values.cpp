#include "compiler/passes/shared_values.h"

#include <string>
#include <unordered_map>

#include "compiler/passes/node_key.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// Numbers values so that equal ones have equal numbers, inside bodies and around them.
class Numbering {
 public:
  explicit Numbering(const Graph& graph) : graph_(graph), outer_(graph.value_count()) {}

  void run() {
    for (const NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      if (const auto* fused = node.as<Fused>()) {
        number_body(node, *fused->body);
      } else {
        for (const ValueId result : node.results) outer_[result.index] = fresh();
      }
    }
  }

  [[nodiscard]] std::vector<std::vector<bool>> shared() const {
    std::vector<std::vector<bool>> result;
    for (const auto& body : bodies_) {
      std::vector<bool>& shared = result.emplace_back();
      for (const uint32_t number : body) shared.push_back(number != nothing && computed_[number] > 1);
    }
    return result;
  }

 private:
  static constexpr uint32_t nothing = 0;

  uint32_t fresh() {
    computed_.push_back(0);
    return static_cast<uint32_t>(computed_.size() - 1);
  }

  void number_body(const Node& fused, const Graph& body) {
    std::vector<uint32_t>& numbers = bodies_.emplace_back(body.value_count(), nothing);
    for (const NodeId id : body.order()) {
      const Node& node = body.node(id);
      const uint32_t number = number_of(fused, body, node, numbers);
      numbers[node.results[0].index] = number;
      if (is_computed(node)) ++computed_[number];
    }
    for (size_t i = 0; i < fused.results.size(); ++i) outer_[fused.results[i].index] = numbers[body.outputs[i].index];
  }

  uint32_t number_of(const Node& fused, const Graph& body, const Node& node, const std::vector<uint32_t>& numbers) {
    if (const auto* input = node.as<Input>()) {
      const ValueId* value = fused.args[input->index].value();
      return value == nullptr ? fresh() : outer_[value->index];
    }
    std::vector<Arg> args = node.args;
    for (Arg& arg : args) for_each_value(arg, [&](ValueId& value) { value = ValueId{numbers[value.index]}; });
    const std::string key = node_key(body, node, args);
    const auto [known, added] = known_.try_emplace(key, nothing);
    if (added) known->second = fresh();
    return known->second;
  }

  const Graph& graph_;
  std::vector<uint32_t> outer_;  ///< by value of the graph
  std::vector<std::vector<uint32_t>> bodies_;
  std::vector<int32_t> computed_{0};  ///< by number: bodies that compute it
  std::unordered_map<std::string, uint32_t> known_;
};

}  // namespace

std::vector<std::vector<bool>> shared_values(const Graph& graph) {
  Numbering numbering(graph);
  numbering.run();
  return numbering.shared();
}

}  // namespace sinter::passes
