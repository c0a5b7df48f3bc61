#include "frontend/torch/backward_graph.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/flat_hash_map.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <typeinfo>
#include <utility>

#include "frontend/torch/convert.h"

namespace sinter::frontend {
namespace {

using torch::autograd::AccumulateGrad;
using torch::autograd::Edge;
using torch::autograd::Node;

/// Leaves are the engine's before all else, and have no number of their own.
constexpr uint64_t kLeafNumber = std::numeric_limits<uint64_t>::max();

/// Opens the lock that the engine holds while it runs a node.
struct NodeLock : Node {
  static std::mutex& of(Node& node) { return node.*&NodeLock::mutex_; }
};

bool has_hooks(Node& node) {
  return !node.pre_hooks().empty() || !node.post_hooks().empty() || !node.retains_grad_hooks().empty() ||
         !node.tensor_pre_hooks().empty() || node.tensor_post_acc_grad_hooks() != nullptr;
}

bool is_watched() {
  return torch::autograd::AnomalyMode::is_enabled() || at::hasCallbacks() ||
         torch::autograd::get_current_node() != nullptr;
}

/// Numbers nodes in the order in which edges lead to them.
class Numbers {
 public:
  explicit Numbers(std::vector<Node*>& nodes) : nodes_(nodes) {}
  uint64_t of(const Edge& edge) {
    if (!edge.is_valid()) return 0;
    const auto [known, is_new] = numbers_.emplace(edge.function.get(), nodes_.size() + 1);
    if (is_new) nodes_.push_back(edge.function.get());
    return known->second;
  }

 private:
  std::vector<Node*>& nodes_;
  ska::flat_hash_map<const Node*, uint64_t> numbers_;
};

/// The engine runs a node on the stream that its first input on a GPU was made on.
bool runs_elsewhere(const Node& node) {
  for (uint32_t i = 0; i < node.num_inputs(); ++i) {
    const auto& input = node.input_metadata(i);
    if (!input.device().is_cuda()) continue;
    return input.stream() != c10::impl::VirtualGuardImpl(c10::kCUDA).getStream(input.device());
  }
  return false;
}

}  // namespace

bool changes_streams(std::span<const Edge> roots) {
  if (!current_cuda_device()) return false;
  std::vector<Node*> nodes;
  Numbers numbers(nodes);
  for (const Edge& root : roots) (void)numbers.of(root);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (runs_elsewhere(*nodes[i])) return true;
    for (const Edge& edge : nodes[i]->next_edges()) (void)numbers.of(edge);
  }
  return false;
}

NodeOrigin NodeOrigin::here() {
  return {.thread = at::RecordFunction::currentThreadId(), .since = at::sequence_number::peek()};
}

std::optional<BackwardGraph> BackwardGraph::of(const BackwardCall& call, NodeOrigin origin) {
  if (call.create_graph || !call.accumulate || !call.all_leaves || is_watched()) return std::nullopt;
  BackwardGraph graph;
  Numbers numbers(graph.nodes_);
  const auto add_edge = [&](const Edge& edge) {
    graph.words_.push_back(numbers.of(edge));
    graph.words_.push_back(edge.input_nr);
  };
  graph.words_.push_back(call.keep_graph ? 1 : 0);
  for (const Edge& root : call.roots) add_edge(root);
  const uint64_t newest = graph.nodes_.empty() ? 0 : graph.nodes_.front()->sequence_nr();
  for (size_t i = 0; i < graph.nodes_.size(); ++i) {
    Node& node = *graph.nodes_[i];
    if (!graph.add(node, origin, newest)) return std::nullopt;
    for (const Edge& edge : node.next_edges()) add_edge(edge);
  }
  return graph;
}

bool BackwardGraph::add(Node& node, NodeOrigin origin, uint64_t newest) {
  if (has_hooks(node)) return false;
  words_.push_back(reinterpret_cast<uint64_t>(&typeid(node)));
  words_.push_back(node.num_outputs());
  if (node.sequence_nr() != kLeafNumber) {
    words_.push_back(newest - node.sequence_nr());
    return node.thread_id() == origin.thread && node.sequence_nr() >= origin.since;
  }
  auto* leaf = dynamic_cast<AccumulateGrad*>(&node);
  if (leaf == nullptr) return false;
  leaves_.push_back(leaf);
  words_.push_back(leaf->variable.requires_grad() ? 1 : 0);
  words_.push_back(static_cast<uint64_t>(leaf->input_metadata(0).dtype().toScalarType()));
  return true;
}

std::vector<HeldGradient> BackwardGraph::gradients() const {
  std::vector<HeldGradient> held;
  for (const AccumulateGrad* leaf : leaves_) {
    const at::Tensor& gradient = leaf->variable.grad();
    held.push_back({gradient, version_of(gradient)});
  }
  return held;
}

bool BackwardGraph::is_librarys_own() const {
  return std::ranges::all_of(nodes_, [](Node* node) {
    constexpr std::string_view generated = "N5torch8autograd9generated";
    return node->sequence_nr() == kLeafNumber || std::string_view(typeid(*node).name()).starts_with(generated);
  });
}

void BackwardGraph::release() const {
  for (Node* node : nodes_) {
    node->will_release_variables();
    node->release_variables();
  }
}

void set_gradient(AccumulateGrad& leaf, at::Tensor gradient) {
  const std::lock_guard lock(NodeLock::of(leaf));
  leaf.variable.mutable_grad() = std::move(gradient);
}

}  // namespace sinter::frontend
