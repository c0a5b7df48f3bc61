// Programs full of views and writes compute, once functional and fused, what eager computes.
#include <gtest/gtest.h>

#include "compiler/ir/print.h"
#include "compiler/passes/pipeline.h"
#include "random_program.h"

namespace sinter::passes {
namespace {

using namespace ir;

TEST(Functionalize, keeps_what_random_programs_of_views_and_writes_compute) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Graph graph = random_program(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(graph));
    ASSERT_EQ(verify(graph, Stage::captured), std::vector<std::string>{});
    Environment environment;
    environment.call = answer_call;
    for (int i = 0; i < 2; ++i) {
      std::vector<RefValue> elements;
      for (int e = 0; e < 12; ++e) elements.emplace_back(static_cast<double>((e * 7 + i * 5 + 3) % 13 - 6));
      environment.inputs.push_back(tensor_of(contiguous(DType::f32, {3, 4}, graph.device), elements));
    }
    const auto expected = run_eagerly(graph, environment);
    for (const PipelineRow& row : pipeline()) {
      row.run(graph, {});
      require(graph, row.after, row.name);
      if (row.name == "functionalize") continue;  // pointwise calls are still ATen's: decompose makes them readable
      const auto found = interpret(graph, environment);
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(found[i].type, expected[i].type) << row.name << "\n" << print(graph);
        ASSERT_EQ(elements_of(found[i]), elements_of(expected[i])) << row.name << " output " << i << "\n"
                                                                   << print(graph);
      }
    }
  }
}

}  // namespace
}  // namespace sinter::passes
