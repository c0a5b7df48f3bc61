// Random graphs mean the same before and after every pass, and their plans compute it. A failure prints the seed and
// the graph.
#include <gtest/gtest.h>

#include "compiler/ir/print.h"
#include "compiler/kernel/lower.h"
#include "compiler/passes/memory_planner.h"
#include "compiler/passes/pipeline.h"
#include "compiler/passes/rematerialize.h"
#include "compiler/plan_print.h"
#include "plan_machine.h"
#include "random_graph.h"

namespace sinter::passes {
namespace {

using namespace ir;

constexpr uint64_t seeds = 500;

/// In turns that of both back ends: some passes are for one of them.
PassContext exact_context(uint64_t seed) {
  PassContext context;
  context.numerics = Numerics::eager;
  context.device.backend = seed % 4 < 2 ? Backend::llvm : Backend::cuda;
  return context;
}

/// Bit for bit, NaN equal to NaN.
bool same(const RefValue& a, const RefValue& b) {
  if (a.index() != b.index()) return false;
  const auto* x = std::get_if<double>(&a);
  return x == nullptr ? a == b : *x == std::get<double>(b) || (*x != *x && std::get<double>(b) != std::get<double>(b));
}

void expect_same(const std::vector<HostTensor>& found, const std::vector<HostTensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].type, expected[i].type) << "output " << i;
    const auto a = elements_of(found[i]);
    const auto b = elements_of(expected[i]);
    ASSERT_EQ(a.size(), b.size()) << "output " << i;
    for (size_t e = 0; e < a.size(); ++e) ASSERT_TRUE(same(a[e], b[e])) << "output " << i << " element " << e;
  }
}

/// An output may lie in another output's memory exactly where the captured graph says so.
ValueId memory_of(const Graph& graph, ValueId value) {
  while (graph.producer(value).as<View>()) value = *graph.producer(value).args[0].value();
  return value;
}

TEST(Pipeline, keeps_what_random_graphs_compute) {
  int64_t redone = 0;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    Graph graph = random_graph(seed);
    const std::string before = print(graph);
    const Environment environment = random_environment(graph, seed);
    const auto expected = interpret(graph, environment);
    for (const PipelineRow& row : pipeline()) {
      if (row.after == Stage::captured || row.name == "functionalize" || row.name == "decompose") continue;
      SCOPED_TRACE("seed " + std::to_string(seed) + " pass " + std::string(row.name) + "\n" + before);
      row.run(graph, exact_context(seed));
      if (row.name == "rematerialize") redone += rematerialize_from(1, graph, exact_context(seed)).changes;
      require(graph, row.after, row.name);
      expect_same(interpret(graph, environment), expected);
      if (testing::Test::HasFailure()) FAIL() << print(graph);
    }
  }
  EXPECT_GT(redone, 0) << "the graphs have nothing that is kept over a call";
}

void fuse_all(Graph& graph, const PassContext& context) {
  for (const PipelineRow& row : pipeline()) {
    if (row.name != "functionalize" && row.name != "decompose") row.run(graph, context);
  }
}

class PlanMemory : public testing::TestWithParam<Temporaries> {};

TEST_P(PlanMemory, computes_random_graphs_without_touching_what_is_alive) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    Graph graph = random_graph(seed);
    const Graph captured = graph;
    const Environment environment = random_environment(graph, seed);
    const auto expected = interpret(graph, environment);
    PassContext context = exact_context(seed);
    context.freeze = seed % 2 == 1;
    fuse_all(graph, context);
    const PlannedMemory planned = MemoryPlanner(graph, context, GetParam()).run();
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(graph) + print(planned.plan));
    PlanMachine machine(graph, planned, environment);
    try {
      expect_same(machine.run(), expected);
    } catch (const std::exception& error) {
      FAIL() << error.what();
    }
    for (size_t i = 0; i < captured.outputs.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const bool shared = memory_of(captured, captured.outputs[i]) == memory_of(captured, captured.outputs[j]);
        EXPECT_EQ(machine.address(i).first == machine.address(j).first, shared) << "outputs " << j << " and " << i;
      }
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST_P(PlanMemory, lets_a_kernel_write_over_an_argument_only_where_it_reads_the_same_element) {
  size_t in_place = 0;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    Graph graph = random_graph(seed);
    fuse_all(graph, exact_context(seed));
    const PlannedMemory planned = MemoryPlanner(graph, exact_context(seed), GetParam()).run();
    for (const PlannedKernel& use : planned.kernels) {
      const kernel::Kernel kernel = kernel::lower(*graph.node(use.node).as<Fused>()->body, "k");
      for (const kernel::Instruction& instruction : kernel.body) {
        const auto* load = std::get_if<kernel::Load>(&instruction.operation);
        if (load == nullptr || !use.in_place[load->param]) continue;
        ++in_place;
        const bool same_element = std::any_of(kernel.stores.begin(), kernel.stores.end(), [&](const auto& store) {
          return use.in_place[store.param] && store.index == load->index;
        });
        EXPECT_TRUE(same_element) << "seed " << seed << "\n" << print(graph);
      }
    }
  }
  EXPECT_GT(in_place, 0u);
}

INSTANTIATE_TEST_SUITE_P(Temporaries, PlanMemory, testing::Values(Temporaries::arena, Temporaries::single),
                         [](const auto& test) { return test.param == Temporaries::arena ? "arena" : "single"; });

}  // namespace
}  // namespace sinter::passes
