#include <gtest/gtest.h>

#include <string_view>

#include "compiler/ir/interpret.h"
#include "compiler/ir/parse.h"
#include "compiler/kernel/interpret.h"
#include "compiler/kernel/lower.h"
#include "compiler/kernel/parse.h"
#include "compiler/kernel/print.h"
#include "compiler/support/errors.h"

/// Lowering keeps the meaning: the kernel of a region gives the elements that its graph gives.
namespace sinter::test {
namespace {

using ir::RefValue;
using kernel::Memory;

/// Elements of storage, different from each other: quarters, and small integers for what holds no fractions.
Memory drawn(const ir::Type& type, int64_t count, int64_t seed) {
  Memory memory;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t number = (7 * i + 5 * seed) % 23 - 11;
    if (ir::is_float(type.dtype)) {
      memory.emplace_back(static_cast<double>(number) / 4);
    } else {
      memory.emplace_back(type.dtype == ir::DType::b8 ? number & 1 : number);
    }
  }
  return memory;
}

int64_t storage_of(const ir::Type& type) { return type.numel() == 0 ? 0 : type.span(); }

struct Case {
  const char* name;
  std::string_view graph;
};
void PrintTo(const Case& subject, std::ostream* out) { *out << subject.name; }

class Meaning : public ::testing::TestWithParam<Case> {};

TEST_P(Meaning, of_the_kernel_is_that_of_the_graph) {
  const ir::Graph graph = ir::parse(GetParam().graph);
  const kernel::Kernel lowered = kernel::lower(graph, "fused");
  const kernel::Kernel kernel = kernel::parse(kernel::print(lowered));
  ir::Environment environment;
  std::vector<Memory> memory;
  for (const ir::NodeId id : graph.order()) {
    if (graph.node(id).as<ir::Input>() == nullptr) continue;
    const ir::Type& type = graph.type(graph.node(id).results[0]);
    memory.push_back(drawn(type, storage_of(type), static_cast<int64_t>(memory.size())));
    environment.inputs.push_back({type, std::make_shared<Memory>(memory.back()), 0});
  }
  const auto expected = ir::interpret(graph, environment);
  for (const ir::ValueId output : graph.outputs) {
    memory.emplace_back(static_cast<size_t>(storage_of(graph.type(output))), RefValue{0.0});
  }
  kernel::interpret(kernel, memory);
  const size_t inputs = environment.inputs.size();
  for (size_t i = 0; i < expected.size(); ++i) {
    const ir::HostTensor found{graph.type(graph.outputs[i]), std::make_shared<Memory>(memory[inputs + i]), 0};
    EXPECT_EQ(ir::elements_of(found), ir::elements_of(expected[i])) << kernel::print(kernel);
  }
}

constexpr Case cases[] = {
    {"chain", R"(graph @g on cuda:0 (%x: f32[3,5], %y: f32[3,5]) -> (%a, %b) {
      %s = sub %x, %y : f32[3,5]
      %a = mul %s, %s : f32[3,5]
      %b = maximum %a, %x : f32[3,5]
    })"},
    {"broadcast_and_transpose", R"(graph @g on cuda:0 (%x: f32[4,6]{1,4}, %s: f32[6], %n: f32[4,1]) -> (%z) {
      %a = add %x, %s : f32[4,6]
      %z = mul %a, %n : f32[4,6]
    })"},
    {"gather_at_computed_places", R"(graph @g on cuda:0 (%t: f32[12,1,4], %p: i64[3,5]) -> (%z) {
      %a = abs %p : i64[3,5]
      %v = view %a + 0 : i64[3,5,1]
      %g = gather %t, %v over 0 : f32[3,5,4]
      %z = neg %g : f32[3,5,4]
    })"},
    {"gather_over_two_dims", R"(graph @g on cuda:0 (%t: f32[12,12,3]{3,36,1}, %p: i64[5], %q: i32[4,1]) -> (%z) {
      %a = abs %p : i64[5]
      %v = view %a + 0 : i64[5,1]
      %w = abs %q : i32[4,1]
      %u = view %w + 0 : i32[4,1,1]
      %s = view %t + 0 : f32[12,12,1]{3,36,1}
      %z = gather %s, %u, %v over 0, 1 : f32[4,5,1]
    })"},
    {"positions", R"(graph @g on cuda:0 (%x: i64[3,5]) -> (%z, %s) {
      %p = position over 1 : i64[3,5]
      %q = position over 0 : i64[15]
      %v = view %q + 0 : i64[3,5]
      %a = mul %p, %v : i64[3,5]
      %z = add %a, %x : i64[3,5]
      %s = sub %p, %x : i64[3,5]
    })"},
    {"sum_of_what_is_gathered", R"(graph @g on cuda:0 (%t: f32[12,4], %p: i64[6,1]) -> (%z) {
      %a = abs %p : i64[6,1]
      %g = gather %t, %a over 0 : f32[6,4]
      %z = reduce sum %g over 1 : f32[6,1]
    })"},
    {"view_of_what_is_computed", R"(graph @g on cuda:0 (%x: f32[4,6]) -> (%z) {
      %n = neg %x : f32[4,6]
      %t = view %n + 0 : f32[6,4]{1,6}
      %z = add %t, 0.5 : f32[6,4]
    })"},
    {"reshape_across_dims", R"(graph @g on cuda:0 (%x: f32[4,6]{1,4}) -> (%z) {
      %n = neg %x : f32[4,6]
      %v = view %n + 0 : f32[3,8]
      %z = abs %v : f32[3,8]
    })"},
    {"halves_round_where_the_graph_says", R"(graph @g on cuda:0 (%x: f16[8], %y: f16[8]) -> (%z) {
      %a = cast %x : f32[8]
      %b = cast %y : f32[8]
      %c = div %a, 3.0 : f32[8]
      %d = cast %c : f16[8]
      %e = cast %d : f32[8]
      %f = mul %e, %b : f32[8]
      %z = cast %f : f16[8]
    })"},
    {"integers_and_flags", R"(graph @g on cuda:0 (%x: i32[2,4], %m: b8[4]) -> (%z, %p) {
      %p = gt %x, 2 : b8[2,4]
      %w = where %m, %x, 7 : i32[2,4]
      %z = add %w, %x : i32[2,4]
    })"},
    {"numbers_of_another_kind", R"(graph @g on cuda:0 (%x: f32[4]) -> (%z, %i, %p) {
      %a = cast 5 : f32[4]
      %z = add %a, %x : f32[4]
      %i = cast 2.75 : i32[4]
      %p = cast 3 : b8[4]
    })"},
    {"softmax", R"(graph @g on cuda:0 (%x: f32[3,7]) -> (%y) {
      %m = reduce max %x over 1 : f32[3,1]
      %d = sub %x, %m : f32[3,7]
      %e = exp %d : f32[3,7]
      %s = reduce sum %e over 1 : f32[3,1]
      %y = div %e, %s : f32[3,7]
    })"},
    {"columns", R"(graph @g on cuda:0 (%x: f32[5,4]) -> (%y, %s) {
      %s = reduce sum %x over 0 : f32[1,4]
      %y = sub %x, %s : f32[5,4]
    })"},
    {"everything_is_one_row", R"(graph @g on cuda:0 (%x: f32[2,3]) -> (%s) {
      %a = abs %x : f32[2,3]
      %s = reduce prod %a over 0, 1 : f32[1,1]
    })"},
    {"joined_and_computed", R"(graph @g on cuda:0 (%a: f32[4,3], %b: f32[4,2]) -> (%z) {
      %n = neg %b : f32[4,2]
      %y = join %a, %n over 1 : f32[4,5]
      %z = mul %y, 2.0 : f32[4,5]
    })"},
    {"rolled_rows_are_summed", R"(graph @g on cuda:0 (%x: f32[3,6]) -> (%s) {
      %a = view %x + 4 : f32[3,2]{6,1}
      %b = view %x + 0 : f32[3,4]{6,1}
      %y = join %a, %b over 1 : f32[3,6]
      %w = mul %y, %x : f32[3,6]
      %s = reduce sum %w over 1 : f32[3,1]
    })"},
    {"number_of_the_host", R"(graph @g on cuda:0 (%x: f32[4], %t: f64[]@cpu) -> (%z) {
      %c = cast %t : f32[]
      %z = mul %x, %c : f32[4]
    })"},
    {"nothing", R"(graph @g on cuda:0 (%x: f32[0,4]) -> (%z) {
      %z = neg %x : f32[0,4]
    })"},
};
INSTANTIATE_TEST_SUITE_P(Lower, Meaning, ::testing::ValuesIn(cases),
                         [](const auto& instance) { return instance.param.name; });

TEST(KernelInterpret, an_element_outside_of_its_memory_is_an_error) {
  const auto kernel =
      kernel::parse("kernel @k over [4] (in f32, out f32) {\n%0 = load p0[1 + i0] : f32\nstore %0 to p1[i0]\n}");
  std::vector<Memory> memory(2, Memory(4, RefValue{1.0}));
  EXPECT_THROW(kernel::interpret(kernel, memory), InternalError);
}

TEST(KernelInterpret, what_a_guard_forbids_is_not_read) {
  const auto kernel = kernel::parse(R"(kernel @k over [4] (in f32, out f32) {
    %0 = inside i0 in [2, 4) : b8
    %1 = load p0[-2 + i0] if %0 reach 2 : f32
    store %1 to p1[i0]
  })");
  std::vector<Memory> memory{Memory{RefValue{5.0}, RefValue{6.0}}, Memory(4, RefValue{1.0})};
  kernel::interpret(kernel, memory);
  EXPECT_EQ(memory[1], (Memory{RefValue{0.0}, RefValue{0.0}, RefValue{5.0}, RefValue{6.0}}));
}

}  // namespace
}  // namespace sinter::test
