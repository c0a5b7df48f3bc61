#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/host_tensor.h"
#include "tests/emulator/compare.h"

namespace sinter::test {

/// The body of a fused node, its kernel, and drawn inputs for both ways to run it.
struct GraphTrial {
  std::string name;
  ir::Graph graph;
  kernel::Kernel kernel;
  KernelSource source;
  std::vector<ir::HostTensor> inputs;
  std::vector<Buffer> params;  ///< exactly as long as the tensors
  double slack = 1;            ///< times what the order of a sum may change
};

/// The graph of a text after all passes, for CUDA.
[[nodiscard]] ir::Graph compiled(const std::string& text);

/// The bodies of the fused nodes of a graph; expects that it has no call.
[[nodiscard]] std::vector<ir::Graph> bodies_of(const ir::Graph& graph);

/// `generic`: the text takes sizes as parameters.
[[nodiscard]] GraphTrial graph_trial(std::string name, ir::Graph graph, bool generic, uint64_t seed);

/// Sets an element of an input's memory, for both ways.
void set_element(GraphTrial& trial, size_t input, int64_t element, double value);

/// Runs all trials in the emulator and in the interpreter: what differs, with the kernel's text.
[[nodiscard]] std::vector<std::string> differences(std::vector<GraphTrial>& trials);

}  // namespace sinter::test
