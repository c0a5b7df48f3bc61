#include "tests/emulator/graph_trial.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>

#include "compiler/codegen/cuda.h"
#include "compiler/codegen/cuda_attention.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/parse.h"
#include "compiler/ir/print.h"
#include "compiler/kernel/attention.h"
#include "compiler/passes/pipeline.h"

namespace sinter::test {
namespace {

using ir::Graph;
using ir::HostTensor;

HostTensor random_tensor(const ir::Type& type, std::mt19937_64& random) {
  HostTensor tensor = ir::zeros(type);
  std::uniform_real_distribution<double> reals(-4, 4);
  for (ir::RefValue& element : *tensor.storage) {
    const double real = reals(random);
    element = ir::is_float(type.dtype) ? ir::stored(real, type.dtype) : static_cast<int64_t>(real > 0);
  }
  return tensor;
}

double real(const ir::RefValue& value) {
  return std::visit([](auto number) { return static_cast<double>(number); }, value);
}

/// Relative to 1 or to the number, whichever is larger: sums come in another order.
double allowed(ir::DType dtype) {
  if (dtype == ir::DType::f64) return 1e-13;
  return dtype == ir::DType::f32 ? 2e-6 : dtype == ir::DType::f16 ? 1.5e-3 : 1.2e-2;
}

std::string difference_of(const GraphTrial& trial) {
  const auto outputs = ir::interpret(trial.graph, {.inputs = trial.inputs, .states = {}, .call = {}});
  std::string text;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ir::Type& type = trial.graph.type(trial.graph.outputs[i]);
    const Buffer& got = trial.params[trial.inputs.size() + i];
    ir::for_each_point(type.static_sizes(), [&](std::span<const int64_t> point) {
      const double value = real(got.get(ir::evaluate(ir::storage_index(type), point)));
      const double want = real(outputs[i].at(point));
      if (value == want || (std::isnan(value) && std::isnan(want))) return;
      if (std::abs(value - want) <= trial.slack * allowed(type.dtype) * std::max(1.0, std::abs(want)) || !text.empty())
        return;
      text = fmt::format("{}: output {} at [{}] is {}, want {}\n{}", trial.name, i, fmt::join(point, ","), value, want,
                         trial.source.text);
    });
  }
  return text;
}

}  // namespace

Graph compiled(const std::string& text) {
  Graph graph = ir::parse(text);
  passes::PassContext context;
  context.device.backend = Backend::cuda;
  passes::run_pipeline(graph, context, [](const passes::PipelineRow&, const Graph&, auto) {});
  return graph;
}

std::vector<Graph> bodies_of(const Graph& graph) {
  std::vector<Graph> bodies;
  for (const ir::NodeId id : graph.order()) {
    EXPECT_EQ(graph.node(id).as<ir::Call>(), nullptr) << ir::print(graph);
    if (const auto* fused = graph.node(id).as<ir::Fused>()) bodies.push_back(*fused->body);
  }
  return bodies;
}

GraphTrial graph_trial(std::string name, Graph graph, bool generic, uint64_t seed) {
  GraphTrial trial{.name = std::move(name),
                   .graph = std::move(graph),
                   .kernel = {},
                   .source = {},
                   .inputs = {},
                   .params = {},
                   .slack = 1};
  if (auto attention = kernel::attention_of(trial.graph, "fused_attention")) {
    trial.source = codegen::generate_cuda(*attention);
    trial.kernel.extents = {trial.source.numel};
    trial.kernel.params = std::move(attention->params);
  } else {
    trial.kernel = kernel::lower(trial.graph, "fused_row");
    trial.kernel.generic_sizes = generic;
    trial.source = codegen::generate_cuda(trial.kernel, test_device());
  }
  std::mt19937_64 random(seed);
  for (const ir::NodeId id : trial.graph.order()) {
    if (trial.graph.node(id).as<ir::Input>() == nullptr) continue;
    const ir::Type& type = trial.graph.type(trial.graph.node(id).results[0]);
    trial.inputs.push_back(random_tensor(type, random));
    Buffer buffer(type.dtype, static_cast<int64_t>(trial.inputs.back().storage->size()));
    for (int64_t e = 0; e < buffer.size(); ++e) buffer.set(e, (*trial.inputs.back().storage)[static_cast<size_t>(e)]);
    trial.params.push_back(std::move(buffer));
  }
  for (const ir::ValueId output : trial.graph.outputs) {
    trial.params.emplace_back(trial.graph.type(output).dtype, trial.graph.type(output).span());
  }
  return trial;
}

void set_element(GraphTrial& trial, size_t input, int64_t element, double value) {
  const ir::RefValue stored = ir::stored(value, trial.inputs[input].type.dtype);
  (*trial.inputs[input].storage)[static_cast<size_t>(element)] = stored;
  trial.params[input].set(element, stored);
}

std::vector<std::string> differences(std::vector<GraphTrial>& trials) {
  std::vector<KernelSource> sources;
  for (const GraphTrial& trial : trials) sources.push_back(trial.source);
  const Emulator emulator(sources);
  std::vector<std::string> found;
  for (size_t i = 0; i < trials.size(); ++i) {
    run_emulated(emulator, i, trials[i].kernel, sources[i], trials[i].params);
    std::string difference = difference_of(trials[i]);
    if (!difference.empty()) found.push_back(std::move(difference));
  }
  return found;
}

}  // namespace sinter::test
