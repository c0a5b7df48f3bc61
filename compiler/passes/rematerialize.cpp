#include "compiler/passes/rematerialize.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "compiler/ir/view_source.h"
#include "compiler/passes/frozen.h"
#include "compiler/passes/liveness.h"
#include "compiler/passes/min_cut.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// Fewer bytes, or a smaller part of what is held, are not worth what it takes to compute values again, and a launch.
constexpr int64_t least_bytes = int64_t{1} << 16;
constexpr int64_t least_part = 16;
/// Bytes that may be read again for each that is not kept: a byte for each window of a pool takes all its elements.
constexpr int64_t most_read = 4;

/// True for what may be done again: it takes little time beside reading and writing memory.
bool can_be_redone(const Graph& graph, const Node& node) {
  if (node.as<View>() != nullptr) return true;
  const auto* primitive = node.as<Primitive>();
  if (primitive == nullptr) return false;
  const ValueId* operand = node.args.empty() ? nullptr : node.args[0].value();
  const bool copies = row(primitive->op).name == "cast" && operand != nullptr &&
                      graph.type(*operand).dtype == graph.type(node.results[0]).dtype;
  return !copies;  // to another layout
}

/// The position behind a library call over which most bytes are held that kernels alone read and that could be computed
/// again.
size_t fullest_place(const Graph& graph) {
  constexpr size_t not_by_kernels = 0;
  const std::vector<NodeId>& order = graph.order();
  std::vector<size_t> last_use = last_uses(graph);
  const auto exclude = [&](ValueId value) { last_use[memory_base(graph, value).index] = not_by_kernels; };
  for (const NodeId id : order) {
    const Node& node = graph.node(id);
    if (is_computed(node) || node.as<View>() != nullptr) continue;
    for (const Arg& arg : node.args) for_each_value(arg, exclude);
  }
  std::ranges::for_each(graph.outputs, exclude);
  std::vector<int64_t> change(order.size() + 2, 0);
  for (size_t i = 0; i < order.size(); ++i) {
    const Node& node = graph.node(order[i]);
    if (node.as<View>() != nullptr || !can_be_redone(graph, node)) continue;
    const ValueId value = node.results[0];
    if (last_use[value.index] <= i) continue;
    change[i] += memory_bytes(graph.type(value));
    change[last_use[value.index] + 1] -= memory_bytes(graph.type(value));
  }
  int64_t held = 0, most = 0;
  size_t place = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    held += change[i];
    if (held <= most || graph.node(order[i]).as<Call>() == nullptr) continue;
    most = held;
    place = i + 1;
  }
  return place;
}

/// The values that are needed behind the fullest place of a graph, and which of them are kept over it.
class Crossing {
 public:
  Crossing(const Graph& graph, const PassContext& context)
      : graph_(graph),
        frozen_(frozen_nodes(graph, context.freeze)),
        place_(fullest_place(graph)),
        position_(graph.node_count(), 0),
        was_stored_(graph.value_count(), false),
        kept_anyway_(graph.value_count(), false),
        needed_(graph.value_count(), false),
        kept_(graph.value_count(), false) {
    const std::vector<NodeId>& order = graph.order();
    for (size_t i = 0; i < order.size(); ++i) position_[order[i].index] = i;
    note_early_uses();
    for (size_t i = place_; i < order.size(); ++i) note_uses(graph.node(order[i]));
    for (ValueId output : graph.outputs) kept_anyway_[memory_base(graph, output).index] = true;
  }

  /// Chooses what to keep. False where that is hardly less than all that is needed: by fewer bytes than `least`.
  bool choose(int64_t least) {
    for (size_t i = place_; i-- > 0;) {
      for (ValueId value : graph_.node(graph_.order()[i]).results) {
        if (needed_[value.index] && !is_free(value)) add_with_operands(value);
      }
    }
    const std::vector<bool> by_source = network_.source_side();
    int64_t kept = 0, needed = 0;
    for (const auto& [value, vertex] : vertices_) {
      kept_[value.index] = by_source[vertex] && !by_source[vertex + 1];
      if (kept_[value.index]) kept += memory_bytes(graph_.type(value));
    }
    kept += keep_what_reads_much();
    for (const ValueId base : memories_needed()) needed += memory_bytes(graph_.type(base));
    return needed - kept >= least && (needed - kept) * least_part > needed;
  }

  [[nodiscard]] bool is_late(NodeId node) const { return position_[node.index] >= place_; }
  /// True for an early value that is computed again where it is needed late.
  [[nodiscard]] bool is_redone(ValueId value) const {
    const bool early = !is_late(graph_.value(value).producer);
    return early && !is_free(value) && !kept_[value.index] && may_be_redone(value);
  }

 private:
  /// Keeps values that are small beside what they are computed of; gives their bytes.
  int64_t keep_what_reads_much() {
    int64_t bytes = 0;
    for (uint32_t i = 0; i < needed_.size(); ++i) {
      const ValueId value{i};
      if (!needed_[i] || !is_redone(value) || graph_.producer(value).as<View>() != nullptr) continue;
      const int64_t own = memory_bytes(graph_.type(value));
      if (bytes_read_for(value) <= own * most_read) continue;
      kept_[i] = true;
      bytes += own;
    }
    return bytes;
  }

  /// Bytes in memory that a value is computed of.
  [[nodiscard]] int64_t bytes_read_for(ValueId value) const {
    std::set<ValueId> seen{value}, bases;
    std::vector<ValueId> stack{value};
    while (!stack.empty()) {
      const Node& node = graph_.producer(stack.back());
      stack.pop_back();
      for (const Arg& arg : node.args) {
        const ValueId* operand = arg.value();
        if (operand == nullptr || !seen.insert(*operand).second) continue;
        if (is_redone(*operand)) {
          stack.push_back(*operand);
        } else {
          bases.insert(memory_base(graph_, *operand));
        }
      }
    }
    int64_t bytes = 0;
    for (const ValueId base : bases) bytes += memory_bytes(graph_.type(base));
    return bytes;
  }

  [[nodiscard]] std::set<ValueId> memories_needed() const {
    std::set<ValueId> bases;
    for (uint32_t i = 0; i < needed_.size(); ++i) {
      if (!needed_[i]) continue;
      const ValueId base = memory_base(graph_, ValueId{i});
      if (!is_free(base)) bases.insert(base);
    }
    return bases;
  }

  /// What early kernels read on the other side of a library call, or the call itself, is in memory once.
  void note_early_uses() {
    std::vector<size_t> calls(graph_.node_count(), 0);  // before a node
    size_t before = 0;
    for (size_t i = 0; i < place_; ++i) {
      const NodeId id = graph_.order()[i];
      const Node& node = graph_.node(id);
      calls[id.index] = before;
      before += node.as<Call>() != nullptr ? 1 : 0;
      if (node.as<View>() != nullptr) continue;
      for (const Arg& arg : node.args) {
        for_each_value(arg, [&](ValueId value) {
          const ValueId base = memory_base(graph_, value);
          const bool apart = calls[graph_.value(base).producer.index] != calls[id.index];
          if (apart || !is_computed(node)) was_stored_[base.index] = true;
        });
      }
    }
  }

  void note_uses(const Node& node) {
    if (node.as<View>() != nullptr) return;
    for (const Arg& arg : node.args) {
      for_each_value(arg, [&](ValueId value) {
        if (!is_computed(node)) {
          kept_anyway_[memory_base(graph_, value).index] = true;
          return;
        }
        while (is_late(graph_.value(value).producer) && graph_.producer(value).as<View>() != nullptr) {
          value = *graph_.producer(value).args[0].value();
        }
        needed_[value.index] = !is_late(graph_.value(value).producer) || needed_[value.index];
      });
    }
  }

  /// True for a value that takes no memory over the place beyond what is held there in any case.
  [[nodiscard]] bool is_free(ValueId value) const {
    const Node& producer = graph_.producer(value);
    return producer.as<Input>() != nullptr || producer.as<State>() != nullptr || kept_anyway_[value.index] ||
           frozen_[graph_.value(value).producer.index];
  }

  /// Sums along the layers of a network would be done from its first layer on, for each of them.
  [[nodiscard]] bool may_be_redone(ValueId value) const {
    return !was_stored_[value.index] && can_be_redone(graph_, graph_.producer(value));
  }

  /// The first of the two vertices of a value: what flows through both has to be kept.
  uint32_t vertex_of(ValueId value) {
    const auto [found, is_new] = vertices_.try_emplace(value, 0);
    if (!is_new) return found->second;
    found->second = network_.add_vertex();
    const uint32_t out = network_.add_vertex();
    network_.add_edge(found->second, out, cost_of_keeping(value));
    return found->second;
  }

  /// Quarters of bytes. What is in memory in any case need not be written for it.
  [[nodiscard]] int64_t cost_of_keeping(ValueId value) const {
    const Node& producer = graph_.producer(value);
    if (producer.as<View>() != nullptr) return FlowNetwork::unlimited;
    const bool in_memory = producer.as<Call>() != nullptr || was_stored_[value.index];
    return memory_bytes(graph_.type(value)) * (in_memory ? 4 : 5);
  }

  void add_with_operands(ValueId late) {
    network_.add_edge(vertex_of(late) + 1, FlowNetwork::sink, FlowNetwork::unlimited);
    std::vector<ValueId> stack{late};
    while (!stack.empty()) {
      const ValueId value = stack.back();
      stack.pop_back();
      if (!added_.insert(value).second) continue;
      const uint32_t vertex = vertex_of(value);
      const Node& node = graph_.producer(value);
      if (!may_be_redone(value)) {
        network_.add_edge(FlowNetwork::source, vertex, FlowNetwork::unlimited);
        continue;
      }
      for (const Arg& arg : node.args) {
        if (arg.value() == nullptr || is_free(*arg.value())) continue;
        network_.add_edge(vertex_of(*arg.value()) + 1, vertex, FlowNetwork::unlimited);
        stack.push_back(*arg.value());
      }
    }
  }

  const Graph& graph_;
  const std::vector<bool> frozen_;
  const size_t place_;
  std::vector<size_t> position_;
  std::vector<bool> was_stored_;   ///< early, for others than the kernel that computes it; by value that is no view
  std::vector<bool> kept_anyway_;  ///< by value that is no view
  std::vector<bool> needed_;       ///< early values that kernels read late
  std::vector<bool> kept_;
  FlowNetwork network_;
  std::map<ValueId, uint32_t> vertices_;
  std::set<ValueId> added_;
};

/// Builds the graph in which late kernels read what is computed again for them: once between two library calls.
class Redoing {
 public:
  Redoing(const Graph& graph, const Crossing& crossing) : graph_(graph), crossing_(crossing), rewrite_(graph) {}

  Graph run() {
    for (NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      if (node.as<Call>() != nullptr) again_.clear();
      if (crossing_.is_late(id) && is_computed(node)) {
        for (const Arg& arg : node.args) {
          if (arg.value() != nullptr) rewrite_.set(*arg.value(), again(*arg.value()));
        }
      }
      rewrite_.copy(id);
    }
    return rewrite_.finish();
  }

  [[nodiscard]] int64_t redone() const { return redone_; }

 private:
  /// What stands for a value where it is read now.
  ValueId again(ValueId value) {
    if (!depends_on_redone(value)) return rewrite_.get(value);
    if (const auto known = again_.find(value); known != again_.end()) return known->second;
    const Node& node = graph_.producer(value);
    std::vector<Arg> args = node.args;
    for (Arg& arg : args) {
      if (arg.value() != nullptr) arg.data = again(*arg.value());
    }
    const ValueId made = rewrite_.add(node.payload, std::move(args), graph_.type(value), node.scope);
    ++redone_;
    again_.emplace(value, made);
    return made;
  }

  /// True for a value that is computed again, and for a late view of one.
  [[nodiscard]] bool depends_on_redone(ValueId value) const {
    while (crossing_.is_late(graph_.value(value).producer) && graph_.producer(value).as<View>() != nullptr) {
      value = *graph_.producer(value).args[0].value();
    }
    return crossing_.is_redone(value);
  }

  const Graph& graph_;
  const Crossing& crossing_;
  Rewriter rewrite_;
  std::map<ValueId, ValueId> again_;  ///< since the last library call
  int64_t redone_ = 0;
};

}  // namespace

PassResult rematerialize(Graph& graph, const PassContext& context) {
  return rematerialize_from(least_bytes, graph, context);
}

PassResult rematerialize_from(int64_t least, Graph& graph, const PassContext& context) {
  if (context.device.backend != Backend::cuda) return {};
  Crossing crossing(graph, context);
  if (!crossing.choose(least)) return {};
  Redoing redoing(graph, crossing);
  Graph next = redoing.run();
  graph = std::move(next);
  return {redoing.redone()};
}

}  // namespace sinter::passes
