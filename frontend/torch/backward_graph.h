#pragma once

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace torch::autograd {
struct AccumulateGrad;
}

namespace sinter::frontend {

/// What autograd's engine is asked for.
struct BackwardCall {
  std::span<const torch::autograd::Edge> roots;
  std::span<const at::Tensor> gradients;  ///< of the roots
  bool keep_graph = false;
  bool create_graph = false;
  bool accumulate = false;  ///< into the leaves' .grad
  bool all_leaves = false;  ///< else those that the caller names
};

/// Where the nodes of a graph come from: one thread makes them, numbered in order.
struct NodeOrigin {
  uint64_t thread = 0;
  uint64_t since = 0;  ///< the first number

  static constexpr uint64_t never = std::numeric_limits<uint64_t>::max();
  /// Of nodes that the calling thread makes from here on.
  [[nodiscard]] static NodeOrigin here();
};

/// A leaf's .grad, which may be undefined, and its version.
struct HeldGradient {
  at::Tensor tensor;
  int64_t version = 0;
};

/// The part of autograd's graph that a backward pass runs through, numbered in an order that follows from its edges.
/// Refers to nodes that the roots of the pass keep alive.
class BackwardGraph {
 public:
  /// Nothing where the pass does more than call operators, or what it calls does not follow from the operators that
  /// were called since: there are hooks, someone watches, the engine is at work already, or nodes are of another
  /// origin.
  [[nodiscard]] static std::optional<BackwardGraph> of(const BackwardCall& call, NodeOrigin origin);

  /// Equal for two passes whose nodes are of the same types, were made in the same order, and hang together alike.
  [[nodiscard]] const std::vector<uint64_t>& words() const { return words_; }
  [[nodiscard]] std::span<torch::autograd::AccumulateGrad* const> leaves() const { return leaves_; }
  /// What the leaves hold now.
  [[nodiscard]] std::vector<HeldGradient> gradients() const;
  /// True where all nodes are of LibTorch's own types, which follow from the operators that were called. A function of
  /// the program's own runs host code.
  [[nodiscard]] bool is_librarys_own() const;
  /// Frees what nodes have saved, as the engine does behind each of them.
  void release() const;

 private:
  [[nodiscard]] bool add(torch::autograd::Node& node, NodeOrigin origin, uint64_t newest);

  std::vector<torch::autograd::Node*> nodes_;
  std::vector<torch::autograd::AccumulateGrad*> leaves_;
  std::vector<uint64_t> words_;
};

/// True where a pass goes to another stream than its device's current one. What passes from one stream to another is
/// marked with the other by autograd's engine, which asks for its memory.
[[nodiscard]] bool changes_streams(std::span<const torch::autograd::Edge> roots);

/// The gradient of a leaf, set as the engine sets it.
void set_gradient(torch::autograd::AccumulateGrad& leaf, at::Tensor gradient);

}  // namespace sinter::frontend
