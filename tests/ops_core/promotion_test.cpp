#include <gtest/gtest.h>

#include <array>
#include <string>

#include "compiler/ir/graph.h"
#include "compiler/ir/op_types.h"

namespace sinter::ir {

namespace {

using enum DType;
constexpr std::array kernel_dtypes{f64, f32, f16, bf16, i64, i32, i16, i8, u8, b8};

PromotionArg tensor(DType dtype) { return {dtype, PromotionArg::Category::tensor}; }
PromotionArg zero_dim(DType dtype) { return {dtype, PromotionArg::Category::zero_dim}; }
PromotionArg number(DType dtype) { return {dtype, PromotionArg::Category::number}; }

DType result(std::initializer_list<PromotionArg> operands, DType default_dtype = f32) {
  return result_dtype(std::span(operands.begin(), operands.size()), default_dtype);
}

std::string dtypes(TypeRule rule, std::initializer_list<PromotionArg> operands) {
  const auto found = op_dtypes(rule, std::span(operands.begin(), operands.size()));
  return found ? std::string(name(found->operands)) + " " + std::string(name(found->result)) : "refused";
}

Arg value(ValueId id) { return Arg{id}; }

}  // namespace

TEST(Promotion, pairs_follow_c10_promote_types) {
  struct Row {
    DType left;
    std::array<DType, kernel_dtypes.size()> with;  ///< by kernel_dtypes
  };
  constexpr std::array table = std::to_array<Row>({
      {f64, {f64, f64, f64, f64, f64, f64, f64, f64, f64, f64}},
      {f32, {f64, f32, f32, f32, f32, f32, f32, f32, f32, f32}},
      {f16, {f64, f32, f16, f32, f16, f16, f16, f16, f16, f16}},
      {bf16, {f64, f32, f32, bf16, bf16, bf16, bf16, bf16, bf16, bf16}},
      {i64, {f64, f32, f16, bf16, i64, i64, i64, i64, i64, i64}},
      {i32, {f64, f32, f16, bf16, i64, i32, i32, i32, i32, i32}},
      {i16, {f64, f32, f16, bf16, i64, i32, i16, i16, i16, i16}},
      {i8, {f64, f32, f16, bf16, i64, i32, i16, i8, i16, i8}},
      {u8, {f64, f32, f16, bf16, i64, i32, i16, i16, u8, u8}},
      {b8, {f64, f32, f16, bf16, i64, i32, i16, i8, u8, b8}},
  });
  for (const Row& entry : table) {
    for (size_t i = 0; i < kernel_dtypes.size(); ++i) {
      EXPECT_EQ(promote(entry.left, kernel_dtypes[i]), entry.with[i]) << name(entry.left) << name(kernel_dtypes[i]);
    }
  }
}

TEST(Promotion, complex_and_unknown_dtypes) {
  EXPECT_EQ(promote(c64, f32), c64);
  EXPECT_EQ(promote(c64, f64), c128);
  EXPECT_EQ(promote(i64, c128), c128);
  EXPECT_EQ(promote(c64, c128), c128);
  EXPECT_EQ(promote(f32, other), other);
  EXPECT_EQ(promote(other, other), other);
}

TEST(Promotion, a_number_only_raises_the_kind) {
  EXPECT_EQ(result({tensor(f16), number(f64)}), f16);
  EXPECT_EQ(result({tensor(i32), number(i64)}), i32);
  EXPECT_EQ(result({tensor(u8), number(i64)}), u8);
  EXPECT_EQ(result({tensor(i32), number(f64)}), f32);
  EXPECT_EQ(result({tensor(i32), number(f64)}, f64), f64);
  EXPECT_EQ(result({tensor(b8), number(i64)}), i64);
  EXPECT_EQ(result({tensor(b8), number(b8)}), b8);
  EXPECT_EQ(result({tensor(i8), number(b8)}), i8);
}

TEST(Promotion, a_0_dim_tensor_yields_to_dims_but_not_to_numbers) {
  EXPECT_EQ(result({tensor(f16), zero_dim(f64)}), f16);
  EXPECT_EQ(result({tensor(i32), zero_dim(i64)}), i32);
  EXPECT_EQ(result({tensor(i32), zero_dim(f64)}), f64);
  EXPECT_EQ(result({tensor(i32), zero_dim(f16)}), f16);
  EXPECT_EQ(result({zero_dim(f16), number(f64)}), f16);
  EXPECT_EQ(result({zero_dim(i32), number(f64)}), f32);
  EXPECT_EQ(result({zero_dim(f16), zero_dim(f32)}), f32);
  EXPECT_EQ(result({tensor(b8), zero_dim(u8), number(i64)}), u8);
}

TEST(Promotion, numbers_alone_take_the_default_dtype) {
  EXPECT_EQ(result({number(f64)}), f32);
  EXPECT_EQ(result({number(i64), number(b8)}), i64);
  EXPECT_EQ(result({}), other);
}

TEST(Promotion, type_rules_say_operands_and_result) {
  EXPECT_EQ(dtypes(TypeRule::same, {tensor(f16), tensor(f32)}), "f32 f32");
  EXPECT_EQ(dtypes(TypeRule::floating, {tensor(i32)}), "refused");
  EXPECT_EQ(dtypes(TypeRule::floating, {tensor(bf16)}), "bf16 bf16");
  EXPECT_EQ(dtypes(TypeRule::float_like, {tensor(i64)}), "f32 f32");
  EXPECT_EQ(dtypes(TypeRule::float_like, {tensor(f16), number(i64)}), "f16 f16");
  EXPECT_EQ(dtypes(TypeRule::compare, {tensor(i32), tensor(f16)}), "f16 b8");
  EXPECT_EQ(dtypes(TypeRule::predicate, {tensor(u8)}), "u8 b8");
  EXPECT_EQ(dtypes(TypeRule::integral, {tensor(b8), tensor(i8)}), "i8 i8");
  EXPECT_EQ(dtypes(TypeRule::integral, {tensor(f32), tensor(i8)}), "refused");
  EXPECT_EQ(dtypes(TypeRule::select, {tensor(b8), tensor(i8), number(f64)}), "f32 f32");
  EXPECT_EQ(dtypes(TypeRule::select, {tensor(i32), tensor(i8), tensor(i8)}), "refused");
  EXPECT_EQ(dtypes(TypeRule::same, {tensor(c64), tensor(f32)}), "refused");
  EXPECT_EQ(dtypes(TypeRule::same, {tensor(other)}), "refused");
}

TEST(Promotion, halves_compute_in_f32) {
  EXPECT_EQ(computation_dtype(f16), f32);
  EXPECT_EQ(computation_dtype(bf16), f32);
  EXPECT_EQ(computation_dtype(f64), f64);
  EXPECT_EQ(computation_dtype(u8), u8);
}

TEST(Promotion, only_the_operands_of_a_call_count) {
  Graph graph;
  const ValueId vector = graph.add1(Input{0}, {}, contiguous(f16, {4}, {}));
  const ValueId scalar = graph.add1(Input{1}, {}, contiguous(f64, {}, {}));
  const std::vector<Arg> add = {value(vector), value(scalar), Arg{2.0}};
  EXPECT_EQ(op_dtypes(graph, op_named("aten_add"), add)->result, f16);
  const std::vector<Arg> slope = {value(vector), Arg{0.01}};
  EXPECT_EQ(op_dtypes(graph, op_named("leaky_relu"), slope)->result, f16);
  const std::vector<Arg> bounds = {value(vector), Arg{}, Arg{int64_t{1}}};
  EXPECT_EQ(op_dtypes(graph, op_named("clamp"), bounds)->operands, f16);
}

TEST(Promotion, numbers_beside_halves_are_rounded_unless_multiplied_or_divided_by_or_added_on_cuda) {
  Graph graph;
  const std::vector<Arg> args = {value(graph.add1(Input{0}, {}, contiguous(f16, {4}, {}))), Arg{0.1}};
  const auto rounds = [&](std::string_view op) { return op_dtypes(graph, op_named(op), args)->round_numbers; };
  for (const auto device : {Device::Kind::cpu, Device::Kind::cuda}) {
    graph.device = {device, 0};
    for (const std::string_view op : {"eq", "atan2", "remainder", "aten_fmod", "aten_pow"})
      EXPECT_TRUE(rounds(op)) << op;
    for (const std::string_view op : {"mul", "div", "floor_divide", "div_rounded"}) EXPECT_FALSE(rounds(op)) << op;
    EXPECT_EQ(rounds("aten_add"), device == Device::Kind::cpu);
  }
}

TEST(MayThrow, integer_division_on_the_cpu_unless_the_divisor_is_a_number_other_than_zero) {
  const Arg tensor_arg{ValueId{0}};
  const std::vector<Arg> by_tensor = {tensor_arg, tensor_arg};
  const std::vector<Arg> by_two = {tensor_arg, Arg{int64_t{2}}};
  const std::vector<Arg> by_zero = {tensor_arg, Arg{int64_t{0}}};
  for (const std::string_view op : {"floor_divide", "remainder", "aten_fmod", "div_rounded"}) {
    EXPECT_TRUE(may_throw(op_named(op), by_tensor, i32, Device::Kind::cpu)) << op;
    EXPECT_TRUE(may_throw(op_named(op), by_zero, i32, Device::Kind::cpu)) << op;
    EXPECT_FALSE(may_throw(op_named(op), by_two, i32, Device::Kind::cpu)) << op;
    EXPECT_FALSE(may_throw(op_named(op), by_tensor, f32, Device::Kind::cpu)) << op;
    EXPECT_FALSE(may_throw(op_named(op), by_tensor, i32, Device::Kind::cuda)) << op;
  }
  EXPECT_FALSE(may_throw(op_named("aten_add"), by_tensor, i32, Device::Kind::cpu));
  EXPECT_FALSE(may_throw(op_named("div"), by_tensor, f32, Device::Kind::cpu));
}

}  // namespace sinter::ir
