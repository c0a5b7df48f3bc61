// Recurrences that are written out step by step are fused over as many steps as one kernel holds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "compiler/ir/interpret.h"
#include "compiler/ir/parse.h"
#include "compiler/ir/print.h"
#include "compiler/kernel/lower.h"
#include "compiler/passes/pipeline.h"
#include "rows.h"

namespace sinter::passes {
namespace {

using namespace ir;

enum class Sums : uint8_t { side_by_side, apart };

/// A state of six rows of 16 that is halved and takes in a row of x at each step, and the sum of each state times c.
/// The last state is a result too where the sums are apart.
Graph recurrence(int64_t steps, Sums sums, std::string_view device = "cuda:0") {
  std::string text;
  std::string results;
  for (int64_t t = 0; t < steps; ++t) {
    text += fmt::format("  %x{0} = view %x + {1} : f32[6,16]{{{2},1}}\n", t, t * 16, steps * 16);
    text += fmt::format("  %k{0} = mul %h{0}, 0.5 : f32[6,16]\n  %h{1} = add %k{0}, %x{0} : f32[6,16]\n", t, t + 1);
    text +=
        fmt::format("  %p{0} = mul %h{1}, %c : f32[6,16]\n  %y{0} = reduce sum %p{0} over 1 : f32[6,1]\n", t, t + 1);
    results += fmt::format("{}%y{}", t == 0 ? "" : ", ", t);
  }
  if (sums == Sums::side_by_side) {
    text += fmt::format("  %y = join {} over 1 : f32[6,{}]\n", results, steps);
    results = "%y";
  } else {
    results += fmt::format(", %h{}", steps);
  }
  return parse(fmt::format("graph @scan on {} (%x: f32[6,{},16], %h0: f32[6,16], %c: f32[16]) -> ({}) {{\n{}}}", device,
                           steps, results, text));
}

Graph fused(Graph graph, bool generic_sizes = false) {
  PassContext context;
  context.device.backend = graph.device.kind == Device::Kind::cuda ? Backend::cuda : Backend::llvm;
  context.generic_sizes = generic_sizes;
  run_pass("fuse", graph, context);
  return graph;
}

size_t kernels(const Graph& graph) {
  return static_cast<size_t>(
      std::ranges::count_if(graph.order(), [&](NodeId id) { return graph.node(id).as<Fused>() != nullptr; }));
}

std::vector<HostTensor> results_of(const Graph& graph, int64_t steps) {
  const std::string type = fmt::format("f32[6,{},16]", steps);
  return interpret(graph, {{drawn(type, 1), drawn("f32[6,16]", 2), drawn("f32[16]", 3)}, {}, {}});
}

void expect_equal(const std::vector<HostTensor>& got, const std::vector<HostTensor>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(numbers_of(got[i]), numbers_of(want[i])) << "output " << i;
}

TEST(Recurrences, of_many_steps_are_one_kernel) {
  for (const Sums sums : {Sums::side_by_side, Sums::apart}) {
    const Graph graph = recurrence(100, sums);
    const Graph made = fused(graph);
    EXPECT_EQ(kernels(made), 1u) << print(made);
    expect_equal(results_of(made, 100), results_of(graph, 100));
  }
}

TEST(Recurrences, end_where_a_kernel_would_be_long_to_build) {
  const Graph made = fused(recurrence(900, Sums::apart));
  EXPECT_GT(kernels(made), 1u);
  EXPECT_LT(kernels(made), 30u);
  for (const NodeId id : made.order()) {
    const auto* kernel = made.node(id).as<Fused>();
    if (kernel == nullptr) continue;
    EXPECT_LE(kernel::lower(*kernel->body, kernel->name).body.size(), 4096u);
  }
}

TEST(Recurrences, are_not_one_kernel_where_sizes_are_parameters_or_on_the_cpu) {
  EXPECT_GT(kernels(fused(recurrence(100, Sums::apart), true)), 1u);
  EXPECT_GT(kernels(fused(recurrence(100, Sums::apart, "cpu"))), 1u);
}

TEST(Recurrences, leave_a_long_join_that_no_kernel_takes_in_to_a_call) {
  const auto calls = [](const Graph& graph) {
    return std::ranges::count_if(graph.order(), [&](NodeId id) {
      const auto* call = graph.node(id).as<Call>();
      return call != nullptr && call->op == "aten::cat" && graph.node(id).args[0].list()->size() == 100;
    });
  };
  EXPECT_EQ(calls(fused(recurrence(100, Sums::side_by_side, "cpu"))), 1);
  EXPECT_EQ(calls(fused(recurrence(40, Sums::side_by_side, "cpu"))), 0);
  EXPECT_EQ(calls(fused(recurrence(100, Sums::side_by_side))), 0);
}

}  // namespace
}  // namespace sinter::passes
