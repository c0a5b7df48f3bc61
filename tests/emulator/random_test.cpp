#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "compiler/codegen/cuda.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/print.h"
#include "compiler/ir/verify.h"
#include "compiler/support/errors.h"
#include "tests/emulator/compare.h"
#include "tests/emulator/random_graph.h"
#include "tests/llvm/values.h"

/// Random pointwise graphs over random views and joins: lowered, written as CUDA text (every second one with sizes as
/// parameters) and emulated, against the interpreter. SINTER_SEED and SINTER_COUNT draw others.
namespace sinter::test {
namespace {

using ir::Graph;
using ir::HostTensor;
using kernel::Kernel;

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// A graph and its kernel with equal inputs for both ways to run it.
struct Trial {
  Graph graph;
  Kernel kernel;
  std::vector<HostTensor> inputs;
  std::vector<Buffer> params;
};

/// One integer or real of a dtype: small, so that products stay finite and exact in every dtype.
HostTensor random_tensor(const ir::Type& type, std::mt19937_64& random) {
  HostTensor tensor = ir::zeros(type);
  for (ir::RefValue& element : *tensor.storage) {
    const auto number = static_cast<int64_t>(random() % 17) - 8;
    if (type.dtype == ir::DType::b8) {
      element = static_cast<int64_t>(random() % 2);
    } else if (ir::is_float(type.dtype)) {
      element = ir::stored(static_cast<double>(number) / 4, type.dtype);
    } else {
      element = ir::stored(number, type.dtype);
    }
  }
  return tensor;
}

Trial trial_of(Graph graph, uint64_t seed) {
  Trial trial{.graph = std::move(graph), .kernel = {}, .inputs = {}, .params = {}};
  trial.kernel = kernel::lower(trial.graph, "fused_random");
  trial.kernel.generic_sizes = seed % 2 == 0;
  std::mt19937_64 random(seed);
  for (const ir::NodeId id : trial.graph.order()) {
    const ir::Node& node = trial.graph.node(id);
    if (node.as<ir::Input>() == nullptr) continue;
    const ir::Type& type = trial.graph.type(node.results[0]);
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

/// What differs between the emulated params and the interpreter; empty when nothing does.
std::string difference(const Trial& trial, const std::vector<Buffer>& params) {
  const auto outputs = ir::interpret(trial.graph, {.inputs = trial.inputs, .states = {}, .call = {}});
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ir::Type& type = trial.graph.type(trial.graph.outputs[i]);
    const ir::Index storage = ir::storage_index(type);
    const Buffer& got = params[trial.inputs.size() + i];
    std::string text;
    ir::for_each_point(type.static_sizes(), [&](std::span<const int64_t> point) {
      const ir::RefValue value = got.get(ir::evaluate(storage, point));
      const ir::RefValue want = outputs[i].at(point);
      if (!text.empty() || agree(value, want, type.dtype, {.ulps = 0, .signed_zero = false})) return;
      text = fmt::format("output {} at [{}] is {}, want {}", i, fmt::join(point, ","), print(value), print(want));
    });
    if (!text.empty()) return text;
  }
  return {};
}

std::string run_alone(const Graph& graph, uint64_t seed) {
  Trial trial = trial_of(graph, seed);
  const std::vector<KernelSource> sources{codegen::generate_cuda(trial.kernel, test_device())};
  const Emulator emulator(sources);
  run_emulated(emulator, 0, trial.kernel, sources[0], trial.params);
  return difference(trial, trial.params);
}

/// The failure on the smallest graph that shows it, with all that reproduces it.
std::string explain(const Graph& graph, uint64_t seed) {
  const auto fails = [seed](const Graph& candidate) {
    try {
      return !run_alone(candidate, seed).empty();
    } catch (const std::exception&) {
      return false;
    }
  };
  const Graph least = shrink(graph, fails);
  return fmt::format("SINTER_SEED={} SINTER_COUNT=1: {}\n{}\n{}", seed, run_alone(least, seed), ir::print(least),
                     codegen::generate_cuda(trial_of(least, seed).kernel, test_device()).text);
}

TEST(RandomGraphs, give_what_the_interpreter_gives) {
  const uint64_t first = from_environment("SINTER_SEED", 1);
  const uint64_t count = from_environment("SINTER_COUNT", 300);
  std::vector<Trial> trials;
  std::vector<uint64_t> seeds;
  std::vector<KernelSource> sources;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Graph graph = random_body(seed);
    try {
      trials.push_back(trial_of(std::move(graph), seed));
    } catch (const InternalError&) {
      continue;  // an index that needs nested divisions: fusion does not make such bodies
    }
    seeds.push_back(seed);
    sources.push_back(codegen::generate_cuda(trials.back().kernel, test_device()));
  }
  EXPECT_GE(trials.size() * 10, count * 8) << "most random graphs must be expressible";
  const Emulator emulator(sources);
  for (size_t i = 0; i < trials.size(); ++i) {
    auto params = trials[i].params;
    run_emulated(emulator, i, trials[i].kernel, sources[i], params);
    if (!difference(trials[i], params).empty()) FAIL() << explain(trials[i].graph, seeds[i]);
  }
}

}  // namespace
}  // namespace sinter::test
