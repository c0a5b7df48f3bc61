// Products that become one mean the same, however their results are looked at and used. A failure prints the seed and
// the graph.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "compiler/compile.h"
#include "compiler/ir/index.h"
#include "compiler/ir/parse.h"
#include "compiler/ir/print.h"
#include "compiler/passes/columns.h"
#include "compiler/passes/memory_planner.h"
#include "compiler/passes/pipeline.h"
#include "compiler/plan_print.h"
#include "plan_machine.h"

namespace sinter::passes {
namespace {

using namespace ir;

constexpr uint64_t seeds = 500;

PassContext frozen_on_cuda() {
  PassContext context;
  context.device.backend = Backend::cuda;
  context.freeze = true;
  return context;
}

/// Products of two inputs and several weights, views of their results, and users of both.
class Products {
 public:
  explicit Products(uint64_t seed) : random_(seed) {}

  Graph run() {
    graph_.device = {Device::Kind::cuda, 0};
    rows_ = 1 + pick(4);
    for (uint32_t i = 0; i < 2; ++i) lefts_.push_back(graph_.add1(Input{i}, {}, matrix(rows_, depth)));
    const size_t products = 2 + pick(4);
    for (uint32_t i = 0; i < products; ++i) add_product();
    for (size_t i = 0; i < 2 * products; ++i) add_user(view_of(products_[pick(products_.size())]));
    if (pick(4) == 0) add_write(products_[pick(products_.size())]);
    if (pick(4) == 0) graph_.outputs.push_back(products_.front());
    if (pick(8) == 0) graph_.outputs.push_back(view_of(products_.back()));
    return std::move(graph_);
  }

 private:
  static constexpr int64_t depth = 2;

  size_t pick(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }

  Type matrix(size_t rows, int64_t columns) {
    return contiguous(DType::f32, {static_cast<int64_t>(rows), columns}, graph_.device);
  }

  ValueId state(const Type& type) { return graph_.add1(State{states_++, "w"}, {}, type); }

  void add_product() {
    constexpr std::array<int64_t, 4> widths = {4, 8, 12, 6};
    const int64_t columns = widths[pick(widths.size())];
    ValueId right = state(pick(2) == 0 ? matrix(depth, columns) : matrix(static_cast<size_t>(columns), depth));
    Type transposed = matrix(depth, columns);
    transposed.strides = {1, depth};
    if (graph_.type(right).sizes != transposed.sizes) right = graph_.add1(View{0}, {{right}}, transposed);
    const ValueId left = lefts_[pick(4) == 0 ? 1 : 0];
    std::vector<Arg> args = {{left}, {right}};
    if (pick(3) != 0) {
      args.insert(args.begin(), {state(contiguous(DType::f32, {columns}, graph_.device))});
      args.insert(args.end(), {{int64_t{1}}, {int64_t{1}}});
    }
    const Call call{args.size() == 2 ? "aten::mm" : "aten::addmm", {}, {}, false, false};
    products_.push_back(graph_.add1(call, std::move(args), matrix(rows_, columns)));
  }

  ValueId view_of(ValueId product) {
    const auto rows = static_cast<int64_t>(rows_);
    const int64_t columns = graph_.type(product).sizes[1].value();
    const int64_t half = columns / 2;
    const auto view = [&](std::vector<Dim> sizes, std::vector<Dim> strides, int64_t offset) {
      return graph_.add1(View{offset}, {{product}},
                         Type{DType::f32, std::move(sizes), std::move(strides), graph_.device});
    };
    switch (pick(8)) {
      case 0:  // heads
        return view({2, rows, half}, {half, columns, 1}, 0);
      case 1:
        return view({1, rows, 2, half}, {rows * columns, columns, half, 1}, 0);
      case 2:  // columns
        return view({rows, half}, {columns, 1}, half);
      case 3:  // transposed
        return view({columns, rows}, {1, columns}, 0);
      case 4:
        return view({rows * columns}, {1}, 0);
      case 5:  // the last row, repeated
        return view({3, columns}, {0, 1}, (rows - 1) * columns);
      case 6: {  // a view of a view
        const ValueId heads = view({2, rows, half}, {half, columns, 1}, 0);
        return graph_.add1(View{half}, {{heads}}, Type{DType::f32, {rows, half}, {columns, 1}, graph_.device});
      }
      default:
        return product;
    }
  }

  void add_user(ValueId value) {
    const Type type = graph_.type(value);
    Type dense = contiguous(DType::f32, type.sizes, graph_.device);
    switch (pick(10)) {
      case 0:
        return add(Call{"test::opaque", {}, {}, false, false}, {{value}}, dense);
      case 1: {
        if (type.rank() == 0) return;
        const auto dim = static_cast<uint32_t>(pick(type.rank()));
        dense.sizes[dim] = 1;
        return add(Reduce{reduction_named("sum"), {dim}}, {{value}},
                   contiguous(DType::f32, dense.sizes, graph_.device));
      }
      case 2: {
        if (type.rank() != 2) return;
        const ValueId weight = state(matrix(static_cast<size_t>(type.sizes[1].value()), 3));
        return add(Call{"aten::mm", {}, {}, false, false}, {{value}, {weight}},
                   contiguous(DType::f32, {type.sizes[0], 3}, graph_.device));
      }
      case 3: {
        if (type.rank() == 0) return;
        std::vector<Dim> sizes = type.sizes;
        sizes[0] = sizes[0] + sizes[0];
        return add(Join{0}, {{value}, {value}}, contiguous(DType::f32, sizes, graph_.device));
      }
      default:
        return add(Primitive{op_named("mul")}, {{value}, {2.0}}, dense);
    }
  }

  void add_write(ValueId product) {
    const ValueId target = graph_.add1(Input{2}, {}, graph_.type(product));
    graph_.add(Write{}, {{target}, {product}}, {});
  }

  void add(Payload payload, std::vector<Arg> args, Type type) {
    graph_.outputs.push_back(graph_.add1(std::move(payload), std::move(args), std::move(type)));
  }

  std::mt19937_64 random_;
  Graph graph_;
  size_t rows_ = 1;
  uint32_t states_ = 0;
  std::vector<ValueId> lefts_;
  std::vector<ValueId> products_;
};

HostTensor multiply(const HostTensor& left, const HostTensor& right, const HostTensor* bias) {
  const Type type = contiguous(DType::f32, {left.type.sizes[0], right.type.sizes[1]}, left.type.device);
  HostTensor result = zeros(type);
  for_each_point(type.static_sizes(), [&](std::span<const int64_t> point) {
    double sum = bias == nullptr ? 0 : std::get<double>(bias->at(point.subspan(1)));
    for (int64_t k = 0; k < left.type.sizes[1].value(); ++k) {
      const std::array<int64_t, 2> a{point[0], k};
      const std::array<int64_t, 2> b{k, point[1]};
      sum += std::get<double>(left.at(a)) * std::get<double>(right.at(b));
    }
    result.set(point, sum);
  });
  return result;
}

std::vector<HostTensor> answer(const Node& node, std::span<const HostTensor> values) {
  const std::string& op = node.as<Call>()->op;
  if (op == "aten::mm") return {multiply(values[0], values[1], nullptr)};
  if (op == "aten::addmm") return {multiply(values[1], values[2], &values[0])};
  std::vector<RefValue> elements = elements_of(values[0]);
  std::reverse(elements.begin(), elements.end());
  return {tensor_of(contiguous(DType::f32, values[0].type.sizes, values[0].type.device), elements)};
}

/// Small whole numbers, whose sums of products are exact.
Environment environment_of(const Graph& graph, uint64_t seed) {
  std::mt19937_64 random(seed);
  Environment environment;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!node.as<Input>() && !node.as<State>()) continue;
    const Type& type = graph.type(node.results[0]);
    std::vector<RefValue> elements(static_cast<size_t>(type.numel()));
    for (RefValue& element : elements) element = static_cast<double>(random() % 9) - 4;
    (node.as<Input>() ? environment.inputs : environment.states).push_back(tensor_of(type, elements));
  }
  environment.call = answer;
  return environment;
}

void expect_same(const std::vector<HostTensor>& found, const std::vector<HostTensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].type, expected[i].type) << "output " << i;
    EXPECT_EQ(elements_of(found[i]), elements_of(expected[i])) << "output " << i;
  }
}

TEST(MergeProducts, keeps_what_random_products_compute) {
  int64_t merged = 0;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    Graph graph = Products(seed).run();
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(graph));
    const Environment environment = environment_of(graph, seed);
    const auto expected = interpret(graph, environment);
    merged += run_pass("merge_products", graph, frozen_on_cuda()).changes;
    expect_same(interpret(graph, environment), expected);
    if (testing::Test::HasFailure()) FAIL() << print(graph);
  }
  EXPECT_GT(merged, static_cast<int64_t>(seeds) / 4);
}

TEST(MergeProducts, gives_plans_that_compute_the_same) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    Graph graph = Products(seed).run();
    const Environment environment = environment_of(graph, seed);
    const auto expected = interpret(graph, environment);
    for (const PipelineRow& row : pipeline()) {
      if (row.name != "functionalize" && row.name != "decompose") row.run(graph, frozen_on_cuda());
    }
    const PlannedMemory planned = plan_memory(graph, frozen_on_cuda());
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(graph) + print(planned.plan));
    PlanMachine machine(graph, planned, environment);
    try {
      expect_same(machine.run(), expected);
    } catch (const std::exception& error) {
      FAIL() << error.what();
    }
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const bool shared = graph.outputs[i] == graph.outputs[j];
        EXPECT_TRUE(shared || machine.address(i) != machine.address(j)) << "outputs " << j << " and " << i;
      }
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(MergeProducts, lays_weights_side_by_side_once_and_copies_nothing_in_a_call) {
  CompileOptions options;
  options.device.backend = Backend::cuda;
  options.freeze = true;
  EntryReport report;
  const Plan plan = compile(parse(R"(
graph @attention on cuda:0 (%x: f16[1024,64]) -> (%mixed) {
  %wq = state 0 "q.weight" : f16[64,64]
  %wk = state 1 "k.weight" : f16[64,64]
  %wv = state 2 "v.weight" : f16[64,64]
  %wq_t = call aten.t(%wq) : f16[64,64]{1,64} alias %wq + 0
  %wk_t = call aten.t(%wk) : f16[64,64]{1,64} alias %wk + 0
  %wv_t = call aten.t(%wv) : f16[64,64]{1,64} alias %wv + 0
  %q = call aten.mm(%x, %wq_t) : f16[1024,64]
  %k = call aten.mm(%x, %wk_t) : f16[1024,64]
  %v = call aten.mm(%x, %wv_t) : f16[1024,64]
  %k_t = call aten.t(%k) : f16[64,1024]{1,64} alias %k + 0
  %scores = call aten.mm(%q, %k_t) : f16[1024,1024]
  %mixed = call aten.mm(%scores, %v) : f16[1024,64]
})"),
                            options, report);
  EXPECT_EQ(plan.once.size(), 2U) << "an allocation and a kernel\n" << print(plan);
  EXPECT_TRUE(std::ranges::none_of(plan.steps, [](const Step& step) { return std::holds_alternative<Launch>(step); }))
      << print(plan);
  ASSERT_EQ(report.externs.size(), 1U);
  EXPECT_EQ(report.externs[0].calls, 3) << print(plan);
}

/// As many pairs of products, each of an input of its own, with 256 MiB of weights a pair.
Graph large_pairs(uint32_t pairs) {
  Graph graph;
  graph.device = {Device::Kind::cuda, 0};
  const auto matrix = [&](int64_t rows, int64_t columns) {
    return contiguous(DType::f32, {rows, columns}, graph.device);
  };
  for (uint32_t pair = 0; pair < pairs; ++pair) {
    const ValueId left = graph.add1(Input{pair}, {}, matrix(16, 4096));
    std::vector<Arg> products;
    for (const uint32_t i : {2 * pair, 2 * pair + 1}) {
      const ValueId right = graph.add1(State{i, "w"}, {}, matrix(4096, 8192));
      products.push_back({graph.add1(Call{"aten::mm", {}, {}, false, false}, {{left}, {right}}, matrix(16, 8192))});
    }
    graph.outputs.push_back(graph.add1(Primitive{op_named("mul")}, products, matrix(16, 8192)));
  }
  return graph;
}

TEST(MergeProducts, holds_no_more_than_two_gibibytes_of_weights_a_second_time) {
  for (const uint32_t pairs : {1U, 8U, 10U}) {
    Graph graph = large_pairs(pairs);
    EXPECT_EQ(run_pass("merge_products", graph, frozen_on_cuda()).changes, std::min(pairs, 8U));
  }
}

/// All views of few dims of a matrix of 3 rows and 4 columns: what `keeps_to_columns` accepts finds the same elements
/// between the columns of a wider one.
TEST(MergeProducts, views_find_their_elements_among_columns) {
  constexpr Columns columns{.begin = 8, .width = 4, .pitch = 20};
  constexpr int64_t elements = 12;
  int64_t kept = 0;
  for (int64_t code = 0; code < elements * 4 * 4 * 13 * 13; ++code) {
    PlacedView view{{DType::f32, {1 + code / 12 % 4, 1 + code / 48 % 4}, {code / 192 % 13, code / 2496}, {}},
                    code % 12};
    if (view.offset + view.type.span() > elements || !keeps_to_columns(view, columns.width)) continue;
    ++kept;
    const PlacedView moved = among_columns(view, columns);
    for_each_point(view.type.static_sizes(), [&](std::span<const int64_t> point) {
      const int64_t before = view.offset + evaluate(storage_index(view.type), point);
      const int64_t after = moved.offset + evaluate(storage_index(moved.type), point);
      ASSERT_EQ(after, before / columns.width * columns.pitch + columns.begin + before % columns.width);
    });
  }
  EXPECT_GT(kept, 100);
}

}  // namespace
}  // namespace sinter::passes
