#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compiler/support/errors.h"
#include "tests/ops_core/evaluate.h"

namespace sinter::ir::test {

namespace {

/// Records what expand adds, as text: "%2 = mul %0 %1 f32". Values 0, 1, ... are the inputs.
class Recorder final : public OpBuilder {
 public:
  explicit Recorder(std::vector<DType> inputs, bool cuda = false) : dtypes_(std::move(inputs)), cuda_(cuda) {}
  [[nodiscard]] bool on_cuda() const override { return cuda_; }
  [[nodiscard]] DType dtype(ValueId value) const override { return dtypes_[value.index]; }
  [[nodiscard]] bool is_number(ValueId) const override { return false; }
  ValueId add(OpId op, std::vector<Arg> operands, DType dtype) override {
    text += std::string(row(op).name);
    for (const Arg& operand : operands) {
      if (const ValueId* value = operand.value()) text += " %" + std::to_string(value->index);
      if (const auto* real = std::get_if<double>(&operand.data)) text += " " + std::to_string(*real);
      if (const auto* whole = std::get_if<int64_t>(&operand.data)) text += " " + std::to_string(*whole);
      if (const auto* flag = std::get_if<bool>(&operand.data)) text += *flag ? " true" : " false";
    }
    text += " -> " + std::string(name(dtype)) + "\n";
    dtypes_.push_back(dtype);
    return {static_cast<uint32_t>(dtypes_.size() - 1)};
  }
  std::string text;

 private:
  std::vector<DType> dtypes_;
  bool cuda_;
};

Arg value(uint32_t index) { return Arg{ValueId{index}}; }

std::string expansion(std::string_view name, std::vector<DType> inputs, const std::vector<Arg>& args, OpDTypes dtypes) {
  Recorder recorder(std::move(inputs));
  const auto result = expand(op_named(name), args, dtypes, recorder);
  return result ? recorder.text : "refused";
}

constexpr OpDTypes singles{DType::f32, DType::f32};
constexpr OpDTypes halves{DType::f16, DType::f16};
constexpr OpDTypes ints{DType::i32, DType::i32};

}  // namespace

TEST(ExpressionParser, product_binds_tighter_than_sum_and_comparison_than_logic) {
  const auto parsed = parse_decomposition("{0} + {1} * 2 < 3 & {2} == 1");
  ASSERT_EQ(parsed.size(), 1U);
  const Expression& root = parsed[0].expression;
  EXPECT_EQ(row(root.op).name, "bitwise_and");
  EXPECT_TRUE(root.logical);
  const Expression& less = root.operands[0];
  EXPECT_EQ(row(less.op).name, "lt");
  EXPECT_EQ(row(less.operands[0].op).name, "add");
  EXPECT_EQ(row(less.operands[0].operands[1].op).name, "mul");
}

TEST(ExpressionParser, sums_and_products_group_to_the_left) {
  const auto parsed = parse_decomposition("{0} - {1} - {2}");
  const Expression& root = parsed[0].expression;
  EXPECT_EQ(row(root.operands[0].op).name, "sub");
  EXPECT_EQ(root.operands[1].index, 2U);
}

TEST(Expression, follows_the_order_of_atens_kernels_on_each_device) {
  const std::vector<Arg> args{value(0), value(1), value(2), Arg{0.5}};
  const std::vector<DType> inputs(3, DType::f32);
  Recorder cpu(inputs);
  Recorder cuda(inputs, true);
  ASSERT_TRUE(expand(op_named("addcmul"), args, singles, cpu));
  ASSERT_TRUE(expand(op_named("addcmul"), args, singles, cuda));
  EXPECT_EQ(cpu.text, "mul 0.500000 %1 -> f32\nfma %3 %2 %0 -> f32\n");
  EXPECT_EQ(cuda.text, "mul %1 %2 -> f32\nfma 0.500000 %3 %0 -> f32\n");
  Recorder one(inputs, true);
  ASSERT_TRUE(expand(op_named("addcmul"), std::vector<Arg>{value(0), value(1), value(2), Arg{1.0}}, singles, one));
  EXPECT_EQ(one.text, "fma %1 %2 %0 -> f32\n");
}

TEST(ExpressionParser, guards_precede_their_alternative) {
  const auto parsed = parse_decomposition("{1}='tanh': tanh({0}); half, {1}=none: refuse; {2}=-0.5: {0}; exp({0})");
  ASSERT_EQ(parsed.size(), 4U);
  EXPECT_EQ(parsed[0].guards.at(0).text, "tanh");
  EXPECT_EQ(parsed[1].guards.at(0).kind, Guard::Kind::half);
  EXPECT_EQ(parsed[1].guards.at(1).kind, Guard::Kind::none);
  EXPECT_EQ(parsed[1].expression.kind, Expression::Kind::refuse);
  EXPECT_EQ(parsed[2].guards.at(0).number, -0.5);
  EXPECT_TRUE(parsed[3].guards.empty());
}

TEST(ExpressionParser, bad_text_is_refused_with_its_column) {
  for (const std::string_view text : {"", "{0} +", "exp({0}", "exp {0}", "no_such_row({0})", "{x}", "{0}; ", "{0} {1}",
                                      "exp({0}, {1})", "where({0}, {1})", "'tanh", "{0}=: exp({0})", "max_of: {0}"}) {
    EXPECT_THROW((void)parse_decomposition(text), InternalError) << text;
  }
  try {
    (void)parse_decomposition("{0} * nope({0})");
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("'nope' at column 11"), std::string::npos) << error.what();
  }
}

TEST(Expand, alpha_one_folds_away) {
  EXPECT_EQ(expansion("aten_add", {DType::f32, DType::f32}, {value(0), value(1), Arg{int64_t{1}}}, singles),
            "add %0 %1 -> f32\n");
  EXPECT_EQ(expansion("aten_add", {DType::f32, DType::f32}, {value(0), value(1), Arg{2.0}}, singles),
            "fma %1 2.000000 %0 -> f32\n");
}

TEST(Expand, sums_that_aten_rounds_once_are_one_fma) {
  const std::vector<DType> inputs(3, DType::f32);
  EXPECT_EQ(expansion("aten_sub", inputs, {value(0), value(1), Arg{0.5}}, singles), "fma %1 -0.500000 %0 -> f32\n");
  EXPECT_EQ(expansion("rsub", inputs, {value(0), value(1), Arg{0.5}}, singles), "fma %0 -0.500000 %1 -> f32\n");
  EXPECT_EQ(expansion("lerp", inputs, {value(0), value(1), Arg{0.25}}, singles),
            "sub %1 %0 -> f32\nfma 0.250000 %3 %0 -> f32\n");
  EXPECT_EQ(expansion("aten_add", {DType::i32, DType::i32}, {value(0), value(1), Arg{int64_t{3}}}, ints),
            "mul %1 3 -> i32\nadd %0 %2 -> i32\n");
}

TEST(Expand, halves_are_cast_before_and_after) {
  EXPECT_EQ(expansion("silu", {DType::f16}, {value(0)}, halves),
            "cast %0 -> f32\nneg %1 -> f32\nexp %2 -> f32\nadd 1.000000 %3 -> f32\ndiv %1 %4 -> f32\ncast %5 -> f16\n");
}

TEST(Expand, operands_wider_than_a_half_are_rounded_to_it_first) {
  EXPECT_EQ(expansion("mul", {DType::f16, DType::i64}, {value(0), value(1)}, halves),
            "cast %1 -> f16\ncast %0 -> f32\ncast %2 -> f32\nmul %3 %4 -> f32\ncast %5 -> f16\n");
}

TEST(Expand, numbers_beside_halves_are_rounded_where_aten_does) {
  constexpr OpDTypes rounding{DType::f16, DType::b8, true};
  constexpr OpDTypes plain{DType::f16, DType::b8};
  EXPECT_EQ(expansion("eq", {DType::f16}, {value(0), Arg{0.1}}, rounding), "cast %0 -> f32\neq %1 0.099976 -> b8\n");
  EXPECT_EQ(expansion("eq", {DType::f16}, {value(0), Arg{0.1}}, plain), "cast %0 -> f32\neq %1 0.100000 -> b8\n");
}

TEST(Expand, numbers_take_the_computation_dtype) {
  EXPECT_EQ(expansion("mul", {DType::i32}, {value(0), Arg{2.7}}, ints), "mul %0 2 -> i32\n");
  EXPECT_EQ(expansion("mul", {DType::f32}, {value(0), Arg{int64_t{3}}}, singles), "mul %0 3.000000 -> f32\n");
  EXPECT_EQ(expansion("eq", {DType::b8}, {value(0), Arg{int64_t{1}}}, {DType::b8, DType::b8}), "eq %0 true -> b8\n");
}

TEST(Expand, missing_bounds_choose_the_alternative) {
  EXPECT_EQ(expansion("clamp", {DType::f32}, {value(0), Arg{}, Arg{2.0}}, singles),
            "gt %0 2.000000 -> b8\nwhere %1 2.000000 %0 -> f32\n");
  EXPECT_EQ(expansion("clamp", {DType::f32}, {value(0), Arg{1.0}, Arg{}}, singles),
            "lt %0 1.000000 -> b8\nwhere %1 1.000000 %0 -> f32\n");
}

TEST(Expand, a_known_condition_builds_only_its_arm) {
  EXPECT_EQ(expansion("div_trunc", {DType::i32}, {value(0), Arg{int64_t{7}}}, ints), "quotient %0 7 -> i32\n");
  EXPECT_EQ(expansion("div_trunc", {DType::i32}, {value(0), Arg{int64_t{-1}}}, ints), "neg %0 -> i32\n");
}

TEST(Expand, truth_values_stay_bools_until_a_number_is_needed) {
  EXPECT_EQ(expansion("logical_and", {DType::f32, DType::b8}, {value(0), value(1)}, {DType::f32, DType::b8}),
            "ne %0 0.000000 -> b8\nbitwise_and %2 %1 -> b8\n");
  EXPECT_EQ(expansion("masked_fill", {DType::f16, DType::b8}, {value(0), value(1), Arg{0.0}}, halves),
            "cast %0 -> f32\nwhere %1 0.000000 %2 -> f32\ncast %3 -> f16\n");
}

TEST(Expand, attributes_that_a_native_row_does_not_know_are_refused) {
  const std::vector<Arg> args = {value(0), value(1), Arg{std::string("floor")}};
  EXPECT_EQ(expansion("div", {DType::f32, DType::f32}, args, singles), "refused");
}

TEST(Expand, what_is_rounded_is_held_in_the_dtype_of_the_operands) {
  EXPECT_EQ(expansion("aten_pow", {DType::bf16}, {value(0), Arg{int64_t{3}}}, {DType::bf16, DType::bf16}),
            "cast %0 -> f32\nmul %1 %1 -> f32\ncast %2 -> bf16\ncast %3 -> f32\nmul %4 %1 -> f32\ncast %5 -> bf16\n");
  EXPECT_EQ(expansion("aten_pow", {DType::f32}, {value(0), Arg{int64_t{3}}}, singles),
            "mul %0 %0 -> f32\nmul %1 %0 -> f32\n");
}

TEST(Expand, dtypes_and_args_without_a_form_are_refused) {
  EXPECT_EQ(
      expansion("aten_sub", {DType::b8, DType::b8}, {value(0), value(1), Arg{int64_t{1}}}, {DType::b8, DType::b8}),
      "refused");
  EXPECT_EQ(expansion("aten_nextafter", {DType::f16, DType::f16}, {value(0), value(1)}, halves), "refused");
  EXPECT_EQ(expansion("aten_pow", {DType::i32, DType::i32}, {value(0), value(1)}, ints), "refused");
  EXPECT_EQ(expansion("where", {DType::b8}, {value(0)}, singles), "refused");
}

TEST(Expand, limits_are_those_of_the_promoted_dtype) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(number(evaluate("nan_to_num", {f16(inf), None{}, None{}, None{}})), 65504.0);
  EXPECT_EQ(number(evaluate("nan_to_num", {f32(-inf), None{}, None{}, None{}})), -std::numeric_limits<float>::max());
  EXPECT_EQ(number(evaluate("nan_to_num", {f32(inf), None{}, 3.0, None{}})), 3.0);
}

}  // namespace sinter::ir::test
