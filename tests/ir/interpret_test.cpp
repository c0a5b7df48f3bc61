#include "compiler/ir/interpret.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compiler/ir/parse.h"
#include "compiler/support/errors.h"

namespace sinter::ir {
namespace {

HostTensor tensor(std::string_view type, std::initializer_list<RefValue> elements) {
  return tensor_of(parse_type(type, {}), std::vector<RefValue>(elements));
}

std::vector<double> reals(const HostTensor& result) {
  std::vector<double> numbers;
  for (const RefValue& value : elements_of(result)) {
    numbers.push_back(std::visit([](auto number) { return static_cast<double>(number); }, value));
  }
  return numbers;
}

std::vector<double> run(std::string_view text, std::vector<HostTensor> inputs) {
  return reals(interpret(parse(text), {std::move(inputs), {}, {}}).at(0));
}

using Numbers = std::vector<double>;

TEST(Interpret, operands_broadcast) {
  EXPECT_EQ(run("graph @g on cpu (%x: f32[2,3], %y: f32[3]) -> (%z) { %z = add %x, %y : f32[2,3] }",
                {tensor("f32[2,3]", {1., 2., 3., 4., 5., 6.}), tensor("f32[3]", {10., 20., 30.})}),
            (Numbers{11, 22, 33, 14, 25, 36}));
}

TEST(Interpret, a_reduction_joins_along_its_dims_and_keeps_them) {
  const std::vector<HostTensor> x = {tensor("f32[2,3]", {1., 2., 3., 4., -5., 6.})};
  EXPECT_EQ(run("graph @g on cpu (%x: f32[2,3]) -> (%z) { %z = reduce sum %x over 1 : f32[2,1] }", x), (Numbers{6, 5}));
  EXPECT_EQ(run("graph @g on cpu (%x: f32[2,3]) -> (%z) { %z = reduce max %x over 0 : f32[1,3] }", x),
            (Numbers{4, 2, 6}));
  EXPECT_EQ(run("graph @g on cpu (%x: f32[2,3]) -> (%z) { %z = reduce prod %x over 0, 1 : f32[1,1] }", x),
            (Numbers{-720}));
}

TEST(Interpret, a_join_lays_its_operands_side_by_side) {
  const std::vector<HostTensor> values = {tensor("f32[2,1]", {1., 2.}), tensor("f32[2,2]", {3., 4., 5., 6.})};
  EXPECT_EQ(
      run("graph @g on cpu (%x: f32[2,1], %y: f32[2,2]) -> (%z) { %z = join %x, %y, %x over 1 : f32[2,4] }", values),
      (Numbers{1, 3, 4, 1, 2, 5, 6, 2}));
  EXPECT_EQ(run("graph @g on cpu (%x: f32[2,1], %y: f32[2,2]) -> (%z) {\n%c = cast 7 : f32[1,2]\n"
                "%z = join %y, %c over 0 : f32[3,2] }",
                values),
            (Numbers{3, 4, 5, 6, 7, 7}));
}

TEST(Interpret, attention_mixes_values_by_the_softmax_of_scores) {
  constexpr double none = -std::numeric_limits<double>::infinity();
  const std::vector<HostTensor> values = {tensor("f16[2,1]", {0., 0.}), tensor("f16[2,1]", {2., 4.}),
                                          tensor("f16[2,2]", {0., none, none, none})};
  const auto mixed = [&](std::string_view rest) {
    return run(fmt::format("graph @g on cuda:0 (%q: f16[2,1], %v: f16[2,1], %b: f16[2,2]) -> (%y) {{\n"
                           "%y = attention %q, %v, %v{} : f16[2,1] }}",
                           rest),
               values);
  };
  EXPECT_EQ(mixed(" scale 0.5"), (Numbers{3, 3}));
  EXPECT_EQ(mixed(" scale 0.5 causal"), (Numbers{2, 3}));
  EXPECT_EQ(mixed(", %b scale 0.5 zeros"), (Numbers{2, 0}));
  const Numbers biased = mixed(", %b scale 0.5");
  EXPECT_EQ(biased[0], 2);
  EXPECT_TRUE(std::isnan(biased[1]));
}

TEST(Interpret, the_largest_of_a_row_with_a_nan_is_nan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto largest = run("graph @g on cpu (%x: f64[3]) -> (%z) { %z = reduce max %x over 0 : f64[1] }",
                           {tensor("f64[3]", {1., nan, 3.})});
  EXPECT_TRUE(std::isnan(largest.at(0)));
}

TEST(Interpret, every_op_rounds_to_its_dtype) {
  const auto text = [](std::string type) {
    return "graph @g on cpu (%x: " + type + "[1]) -> (%z) { %y = add %x, 1.0 : " + type +
           "[1]\n%z = add %y, -1.0 : " + type + "[1] }";
  };
  EXPECT_EQ(run(text("f32"), {tensor("f32[1]", {0x1p-25})}), Numbers{0});
  EXPECT_EQ(run(text("f64"), {tensor("f64[1]", {0x1p-25})}), Numbers{0x1p-25});
  EXPECT_EQ(run(text("f16"), {tensor("f16[1]", {0x1.4p-11})}), Numbers{0x1p-10});
  EXPECT_EQ(run(text("f16"), {tensor("f16[1]", {0x1p-11})}), Numbers{0});
  EXPECT_EQ(run(text("bf16"), {tensor("bf16[1]", {0x1.8p-8})}), Numbers{0x1p-7});
}

TEST(Interpret, halves_overflow_to_infinity_and_keep_denormals) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(
      run("graph @g on cpu (%x: f16[2]) -> (%z) { %z = add %x, %x : f16[2] }", {tensor("f16[2]", {65504., 0x1p-24})}),
      (Numbers{inf, 0x1p-23}));
}

TEST(Interpret, integers_wrap) {
  EXPECT_EQ(run("graph @g on cpu (%x: u8[2]) -> (%z) { %z = add %x, 10 : u8[2] }",
                {tensor("u8[2]", {int64_t{250}, int64_t{1}})}),
            (Numbers{4, 11}));
  EXPECT_EQ(run("graph @g on cpu (%x: i8[1]) -> (%z) { %z = mul %x, 2 : i8[1] }", {tensor("i8[1]", {int64_t{127}})}),
            Numbers{-2});
}

TEST(Interpret, casts_truncate_and_comparisons_give_bools) {
  EXPECT_EQ(run("graph @g on cpu (%x: f32[3]) -> (%z) { %z = cast %x : i32[3] }", {tensor("f32[3]", {-1.7, 2.9, 0.})}),
            (Numbers{-1, 2, 0}));
  EXPECT_EQ(run("graph @g on cpu (%x: f32[3]) -> (%z) {\n%b = lt %x, 2.0 : b8[3]\n%z = where %b, 5.0, %x : f32[3]\n}",
                {tensor("f32[3]", {1., 2., 3.})}),
            (Numbers{5, 2, 3}));
}

TEST(Interpret, views_read_the_storage_of_their_base) {
  EXPECT_EQ(
      run("graph @g on cpu (%x: f32[2,3]) -> (%z) {\n%t = view %x + 0 : f32[3,2]{1,3}\n%s = view %t + 1 : f32[2]{3}\n"
          "%z = mul %s, 2.0 : f32[2]\n}",
          {tensor("f32[2,3]", {1., 2., 3., 4., 5., 6.})}),
      (Numbers{4, 10}));
}

TEST(Interpret, views_of_results_follow_the_results_strides) {
  EXPECT_EQ(
      run("graph @g on cpu (%x: f32[2,3]) -> (%z) {\n%y = add %x, 0.0 : f32[2,3]{1,2}\n%z = view %y + 0 : f32[6]\n}",
          {tensor("f32[2,3]", {1., 2., 3., 4., 5., 6.})}),
      (Numbers{1, 4, 2, 5, 3, 6}));
}

TEST(Interpret, inputs_of_other_strides_are_taken_by_their_elements) {
  EXPECT_EQ(run("graph @g on cpu (%x: f32[2,2]) -> (%z) { %z = view %x + 0 : f32[4] }",
                {tensor("f32[2,2]{1,2}", {1., 2., 3., 4.})}),
            (Numbers{1, 2, 3, 4}));
}

TEST(Interpret, fused_bodies_give_what_their_lines_give) {
  const HostTensor x = tensor("f32[2,2]", {-1., 2., 3., -4.});
  const auto flat = run(
      "graph @g on cpu (%x: f32[2,2]) -> (%z) {\n%r = maximum %x, 0.0 : f32[2,2]\n%t = view %r + 0 : f32[2,2]{1,2}\n"
      "%z = add %t, %x : f32[2,2]\n}",
      {x});
  const auto fused =
      run("graph @g on cpu (%x: f32[2,2]) -> (%z) {\n%z = fused @f(%x) : f32[2,2] {\n%r = maximum %0, 0.0 : f32[2,2]\n"
          "%t = view %r + 0 : f32[2,2]{1,2}\n%a = add %t, %0 : f32[2,2]\nyield %a\n}\n}",
          {x});
  EXPECT_EQ(flat, fused);
  EXPECT_EQ(flat, (Numbers{-1, 5, 5, -4}));
}

TEST(Interpret, empty_and_zero_dim_tensors) {
  EXPECT_EQ(run("graph @g on cpu (%x: f32[0,3]) -> (%z) { %z = maximum %x, 0.0 : f32[0,3] }", {tensor("f32[0,3]", {})}),
            Numbers{});
  EXPECT_EQ(run("graph @g on cpu (%x: f32[]) -> (%z) { %z = maximum %x, 0.0 : f32[] }", {tensor("f32[]", {-3.})}),
            Numbers{0});
}

std::string error_of(std::string_view text, const Environment& environment) {
  try {
    (void)interpret(parse(text), environment);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Interpret, calls_are_refused_by_name_unless_answered) {
  const std::string_view text = "graph @g on cpu (%x: f32[2]) -> (%z) { %z = call aten.flip(%x, [0]) : f32[2] }";
  Environment environment{{tensor("f32[2]", {1., 2.})}, {}, {}};
  EXPECT_EQ(error_of(text, environment), "interpret: 'aten::flip' is an ATen call, which the interpreter does not run");
  environment.call = [](const Node&, std::span<const HostTensor> values) {
    std::vector<RefValue> elements = elements_of(values[0]);
    std::swap(elements[0], elements[1]);
    return std::vector<HostTensor>{tensor_of(values[0].type, elements)};
  };
  EXPECT_EQ(reals(interpret(parse(text), environment).at(0)), (Numbers{2, 1}));
}

TEST(Interpret, missing_and_mistyped_tensors_are_named) {
  const std::string_view text = "graph @g on cpu (%x: f32[2]) -> (%x) { %w = state 1 \"w\" : f32[2] }";
  EXPECT_EQ(error_of(text, {}), "interpret: input 0 is not given");
  EXPECT_EQ(error_of(text, {{tensor("f32[1]", {1.})}, {}, {}}), "interpret: input 0 is f32[1], the graph takes f32[2]");
  EXPECT_EQ(error_of(text, {{tensor("f32[2]", {1., 2.})}, {}, {}}), "interpret: state 1 is not given");
  EXPECT_EQ(error_of("graph @g on cpu (%x: f32[s0]) -> (%x) { }", {}),
            "interpret: f32[s0] is symbolic; give the sizes as numbers");
}

}  // namespace
}  // namespace sinter::ir
