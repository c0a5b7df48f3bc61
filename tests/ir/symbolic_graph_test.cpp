#include "compiler/ir/symbolic_graph.h"

#include <gtest/gtest.h>

#include "compiler/ir/print.h"

namespace sinter::ir {
namespace {

using Samples = SizeSolver::Samples;

/// The form that is found for `wanted`, as text.
std::string form(const std::vector<Samples>& symbols, const Samples& wanted) {
  SizeTable table;
  SizeSolver solver(table, symbols);
  const auto term = solver.solve(wanted, {});
  return term ? table.text(*term) : "none";
}

TEST(SizeSolver, finds_the_simplest_form_that_fits_every_sample) {
  EXPECT_EQ(form({{2, 5}}, {2, 5}), "s0");
  EXPECT_EQ(form({{2, 5}}, {128, 320}), "64*s0");
  EXPECT_EQ(form({{2, 5}}, {4, 25}), "s0*s0");
  EXPECT_EQ(form({{2, 5}}, {12, 75}), "3*s0*s0");
  EXPECT_EQ(form({{2, 5}}, {8, 125}), "s0*s0*s0");
  EXPECT_EQ(form({{2, 5}}, {3, 6}), "s0+1");
  EXPECT_EQ(form({{2, 5}}, {-3, 3}), "2*s0-7");
  EXPECT_EQ(form({{2, 5}, {7, 9}}, {14, 45}), "s0*s1");
  EXPECT_EQ(form({{2, 5}, {7, 9}}, {9, 14}), "s0+s1");
  EXPECT_EQ(form({{2, 5}, {7, 9}}, {5, 4}), "s1-s0");
  EXPECT_EQ(form({{224, 112}}, {112, 56}), "s0/2");
  EXPECT_EQ(form({{7, 10, 8}}, {4, 5, 4}), "(s0+1)/2");
  EXPECT_EQ(form({{7, 10, 8}}, {1, 100, 3}), "none");
}

TEST(SizeSolver, never_answers_a_form_that_misses_a_sample) {
  uint64_t state = 1;
  const auto random = [&state](int64_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(bound));
  };
  int found = 0;
  for (int round = 0; round < 2000; ++round) {
    Samples a, b, wanted;
    for (int k = 0; k < 3; ++k) {
      a.push_back(2 + random(500));
      b.push_back(2 + random(500));
      wanted.push_back(round % 2 == 0 ? random(1000) : a.back() * b.back() * (1 + round % 7) + round % 3);
    }
    SizeTable table;
    SizeSolver solver(table, {a, b});
    const auto term = solver.solve(wanted, {});
    if (!term) continue;
    ++found;
    for (size_t k = 0; k < 3; ++k) {
      ASSERT_EQ(table.evaluate(std::vector{a[k], b[k]})->at(term->index), wanted[k]) << table.text(*term);
    }
  }
  EXPECT_GT(found, 300);
}

Call call(std::string op) {
  Call node;
  node.op = std::move(op);
  return node;
}

Type row_major(std::vector<Dim> sizes) { return contiguous(DType::f32, std::move(sizes), {}); }

/// A captured attention-like program: a view that splits heads, scores of size s by s, a convolution's halved size.
Graph captured(int64_t batch, int64_t length) {
  Graph graph;
  const ValueId x = graph.add1(Input{0}, {}, row_major({batch, length, 8}));
  const ValueId w = graph.add1(State{0, "w"}, {}, row_major({8, 8, 3}));
  const ArgList heads{{batch}, {length}, {int64_t{2}}, {int64_t{4}}};
  const ValueId split = graph.add1(call("aten::view"), {{x}, {heads}}, row_major({batch, length, 2, 4}));
  graph.value(split).alias = Alias{x, 0};
  const ValueId scores = graph.add1(call("aten::scores"), {{split}}, row_major({batch, 2, length, length}));
  const ValueId t = graph.add1(call("aten::transpose.int"), {{x}, {int64_t{1}}, {int64_t{2}}},
                               Type{DType::f32, {batch, 8, length}, {8 * length, 1, 8}, {}});
  graph.value(t).alias = Alias{x, 0};
  const auto list = [](int64_t number) { return Arg{ArgList{{number}}}; };
  const ValueId conv = graph.add1(call("aten::convolution"),
                                  {{t}, {w}, {None{}}, list(2), list(1), list(1), {false}, list(0), {int64_t{1}}},
                                  row_major({batch, 8, (length - 1) / 2 + 1}));
  const ValueId last = graph.add1(call("aten::select.int"), {{x}, {int64_t{1}}, {length - 1}},
                                  Type{DType::f32, {batch, 8}, {8 * length, 1}, {}});
  graph.value(last).alias = Alias{x, 8 * (length - 1)};
  graph.outputs = {scores, conv, last};
  return graph;
}

SymbolicGraph solved(const std::vector<Graph>& graphs) {
  std::vector<Numbers> numbers;
  for (const Graph& graph : graphs) numbers.push_back(numbers_of(graph));
  auto result = SymbolicGraph::solve(graphs[0], numbers);
  if (const auto* failed = std::get_if<Unsolved>(&result)) throw std::runtime_error(failed->reason);
  return std::get<SymbolicGraph>(std::move(result));
}

TEST(SymbolicGraph, two_captures_give_the_graph_of_every_other_shape) {
  const SymbolicGraph graph = solved({captured(2, 16), captured(3, 40)});
  ASSERT_EQ(graph.symbols().size(), 2);
  EXPECT_EQ(graph.signature(0), "f32[s0,s1,8]");
  for (int64_t batch = 2; batch < 9; ++batch) {
    for (int64_t length = 4; length < 40; ++length) {
      const auto made = graph.instantiate(std::vector{batch, length});
      ASSERT_TRUE(made.has_value());
      ASSERT_EQ(print(*made), print(captured(batch, length)));
    }
  }
}

TEST(SymbolicGraph, dims_that_are_equal_in_every_sample_are_one_symbol) {
  const SymbolicGraph graph = solved({captured(6, 6), captured(9, 9)});
  ASSERT_EQ(graph.symbols().size(), 1);
  EXPECT_EQ(graph.symbols()[0].dims.size(), 2);
  EXPECT_TRUE(graph.bind([](const InputDim&) { return 5; }).has_value());
  EXPECT_FALSE(graph.bind([](const InputDim& dim) { return dim.dim == 0 ? 5 : 7; }).has_value());
}

TEST(SymbolicGraph, sizes_0_and_1_are_no_members_of_a_range) {
  const auto failed = SymbolicGraph::solve(captured(1, 16), {numbers_of(captured(1, 16)), numbers_of(captured(2, 16))});
  ASSERT_TRUE(std::holds_alternative<Unsolved>(failed));
  EXPECT_EQ(std::get<Unsolved>(failed).reason, "size[0] of input 0 is 0 or 1 in one call");
  const SymbolicGraph graph = solved({captured(2, 16), captured(3, 16)});
  EXPECT_FALSE(graph.bind([](const InputDim&) { return 1; }).has_value());
  const SymbolicGraph lengths = solved({captured(2, 16), captured(2, 40)});
  EXPECT_FALSE(lengths.instantiate(std::vector<int64_t>{2}).has_value()) << "the convolution's result has size 1";
}

TEST(SymbolicGraph, a_number_that_follows_from_no_size_is_named) {
  const auto scaled = [](int64_t batch, int64_t factor) {
    Graph graph = captured(batch, 16);
    const ValueId scores = graph.outputs[0];
    graph.add1(call("aten::mul.Scalar"), {{scores}, {factor}}, graph.type(scores), graph.scope({"net.scale", ""}));
    return graph;
  };
  const std::vector<Graph> graphs = {scaled(2, 1), scaled(3, 977), scaled(4, 3)};
  const auto failed =
      SymbolicGraph::solve(graphs[0], {numbers_of(graphs[0]), numbers_of(graphs[1]), numbers_of(graphs[2])});
  ASSERT_TRUE(std::holds_alternative<Unsolved>(failed));
  EXPECT_EQ(std::get<Unsolved>(failed).reason,
            "argument 1 of aten::mul.Scalar at net.scale was 1, 977, 3 and follows from no size");
}

/// The diagonal below the first one of a matrix of 5 columns, and its first 7 rows, every second one.
Graph clamped(int64_t rows) {
  Graph graph;
  const ValueId x = graph.add1(Input{0}, {}, row_major({rows, 5}));
  const ValueId diagonal = graph.add1(call("aten::diagonal"), {{x}, {int64_t{-1}}, {int64_t{0}}, {int64_t{-1}}},
                                      Type{DType::f32, {std::min<int64_t>(rows - 1, 5)}, {6}, {}});
  graph.value(diagonal).alias = Alias{x, 5};
  const ValueId top =
      graph.add1(call("aten::slice.Tensor"), {{x}, {int64_t{0}}, {int64_t{0}}, {int64_t{7}}, {int64_t{2}}},
                 Type{DType::f32, {(std::min<int64_t>(rows, 7) + 1) / 2, 5}, {10, 1}, {}});
  graph.value(top).alias = Alias{x, 0};
  graph.outputs = {diagonal, top};
  return graph;
}

TEST(SymbolicGraph, sizes_that_end_at_another_are_minima) {
  const SymbolicGraph graph = solved({clamped(3), clamped(19)});
  for (int64_t rows = 3; rows < 40; ++rows) {
    const auto made = graph.instantiate(std::vector{rows});
    ASSERT_TRUE(made.has_value());
    ASSERT_EQ(print(*made), print(clamped(rows)));
  }
}

TEST(SymbolicGraph, a_rounding_found_by_trial_tells_the_remainders_it_has_seen) {
  const auto halves = [](int64_t size) {
    Graph graph;
    const ValueId x = graph.add1(Input{0}, {}, row_major({size}));
    const ValueId half =
        graph.add1(call("aten::slice.Tensor"), {{x}, {int64_t{0}}, {int64_t{0}}, {size / 2}}, row_major({size / 2}));
    graph.value(half).alias = Alias{x, 0};
    graph.outputs = {half};
    return graph;
  };
  const SymbolicGraph graph = solved({halves(8), halves(20)});
  EXPECT_EQ(graph.remainders(std::vector<int64_t>{8}), graph.remainders(std::vector<int64_t>{20}));
  EXPECT_NE(graph.remainders(std::vector<int64_t>{8}), graph.remainders(std::vector<int64_t>{9}));
}

}  // namespace
}  // namespace sinter::ir
