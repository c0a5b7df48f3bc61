#pragma once

#include <functional>
#include <span>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/ir/host_tensor.h"

namespace sinter::ir {

/// What a graph reads from outside, each by index.
struct Environment {
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> states;
  /// Answers an ATen call: the node, its value args in order, the results. Where it is empty, a call is a UserError
  /// that names the op.
  std::function<std::vector<HostTensor>(const Node& node, std::span<const HostTensor> values)> call;
};

/// Runs a graph of the functional or fused stage on the CPU, element by element, through the op table's reference
/// functions, and gives its outputs, then the values of its write-backs. Every op's result is rounded to its dtype.
/// Slow, and without LibTorch: it says what a graph means, so that a pass can be checked to keep it. Throws UserError
/// for a tensor that the environment lacks or that has another dtype or other sizes (strides may differ), and for
/// symbolic types.
[[nodiscard]] std::vector<HostTensor> interpret(const Graph& graph, const Environment& environment);

}  // namespace sinter::ir
