#include <gtest/gtest.h>

#include "compiler/ir/print.h"
#include "compiler/passes/memory_planner.h"
#include "compiler/passes/pipeline.h"
#include "compiler/plan_print.h"
#include "plan_machine.h"
#include "random_program.h"

namespace sinter::passes {
namespace {

using namespace ir;

constexpr uint64_t seeds = 1000;

Environment environment_of(const Graph& graph) {
  Environment environment;
  environment.call = answer_call;
  for (int i = 0; i < 2; ++i) {
    std::vector<RefValue> elements;
    for (int e = 0; e < 12; ++e) elements.emplace_back(static_cast<double>((e * 7 + i * 5 + 3) % 13 - 6));
    environment.inputs.push_back(tensor_of(contiguous(DType::f32, {3, 4}, graph.device), elements));
  }
  return environment;
}

ValueId memory_of(const Graph& graph, ValueId value) {
  const auto& alias = graph.value(value).alias;
  return alias ? alias->base : value;
}

/// What a functional graph computes of what a captured one does: outputs in memory that is written stand for that
/// memory, so their own values say nothing; then what every input holds in the end.
std::vector<std::optional<HostTensor>> results_of(const Graph& captured, const Graph& graph,
                                                  const Environment& environment) {
  const std::vector<HostTensor> found = interpret(graph, environment);
  std::vector<std::optional<HostTensor>> results;
  std::vector<std::optional<HostTensor>> inputs(environment.inputs.begin(), environment.inputs.end());
  size_t next = captured.outputs.size();
  for (NodeId id : graph.order()) {
    if (!graph.node(id).as<Write>()) continue;
    inputs[graph.producer(*graph.node(id).args[0].value()).as<Input>()->index] = found[next++];
  }
  for (size_t i = 0; i < captured.outputs.size(); ++i) {
    const bool given = captured.producer(memory_of(captured, captured.outputs[i])).as<Input>() != nullptr;
    results.push_back(given ? std::nullopt : std::optional(found[i]));
  }
  results.insert(results.end(), inputs.begin(), inputs.end());
  return results;
}

TEST(Functionalize, keeps_what_random_programs_of_views_and_writes_compute) {
  int64_t joined = 0;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    Graph graph = random_program(seed);
    const Graph captured = graph;
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(graph));
    ASSERT_EQ(verify(graph, Stage::captured), std::vector<std::string>{});
    const Environment environment = environment_of(graph);
    const auto expected = run_eagerly(graph, environment);
    for (const PipelineRow& row : pipeline()) {
      const PassResult result = row.run(graph, {});
      require(graph, row.after, row.name);
      if (row.name == "join_parts") joined += result.changes;
      if (row.after == Stage::captured || row.name == "functionalize")
        continue;  // pointwise calls are still ATen's: decompose makes them readable
      const auto found = results_of(captured, graph, environment);
      for (size_t i = 0; i < expected.size(); ++i) {
        if (!found[i]) continue;
        if (i < captured.outputs.size()) {
          ASSERT_EQ(found[i]->type, expected[i].type) << row.name << "\n" << print(graph);
        }
        ASSERT_EQ(elements_of(*found[i]), elements_of(expected[i])) << row.name << " result " << i << "\n"
                                                                    << print(graph);
      }
    }
  }
  EXPECT_GE(joined, 10) << "parts that cover a tensor";
}

TEST(Functionalize, the_plans_of_random_programs_write_what_eager_writes) {
  size_t stored_at_home = 0;
  for (uint64_t seed = 1; seed < 2 * seeds; seed += 2) {
    Graph graph = random_program(seed);
    const std::string before = print(graph);
    const Environment environment = environment_of(graph);
    const auto expected = run_eagerly(graph, environment);
    const size_t outputs = graph.outputs.size();
    for (const PipelineRow& row : pipeline()) row.run(graph, {});
    for (const Temporaries temporaries : {Temporaries::arena, Temporaries::single}) {
      const PlannedMemory planned = MemoryPlanner(graph, {}, temporaries).run();
      SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + before + print(graph) + print(planned.plan));
      PlanMachine machine(graph, planned, environment);
      std::vector<HostTensor> found;
      try {
        found = machine.run();
      } catch (const std::exception& error) {
        FAIL() << error.what();
      }
      for (size_t i = 0; i < outputs; ++i) ASSERT_EQ(elements_of(found[i]), elements_of(expected[i])) << "output " << i;
      for (size_t i = 0; i < planned.plan.written.size(); ++i) {
        const uint32_t input = planned.plan.buffers[planned.plan.written[i].index].index;
        ASSERT_EQ(elements_of(found[outputs + i]), elements_of(expected[outputs + input])) << "input " << input;
      }
      for (const Step& step : planned.plan.steps) {
        const auto* launch = std::get_if<Launch>(&step);
        if (launch == nullptr) continue;
        const BufferKind kind = planned.plan.buffers[launch->args.back().buffer.index].kind;
        stored_at_home += kind == BufferKind::input ? 1 : 0;
      }
    }
  }
  EXPECT_GT(stored_at_home, seeds / 5);
}

}  // namespace
}  // namespace sinter::passes
