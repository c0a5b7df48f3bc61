#include "compiler/ir/verify.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/ir/parse.h"
#include "compiler/ir/print.h"
#include "compiler/support/errors.h"

namespace sinter::ir {
namespace {

std::string problems(const Graph& graph, Stage stage) {
  return fmt::format("{}", fmt::join(verify(graph, stage), "\n"));
}

/// Problems of a graph with inputs of several dtypes and these lines.
std::string problems(std::string_view lines, Stage stage = Stage::functional) {
  const std::string text = fmt::format(
      "graph @g on cpu (%x: f32[4,6], %row: f32[6], %h: f16[4,6], %i: i64[4,6], %b: b8[4,6], %c: c64[4,6], "
      "%k: f32[4,6]@cuda:0) -> (%x) {{\n{}\n}}",
      lines);
  return problems(parse(text), stage);
}

TEST(Verify, a_well_formed_graph_of_each_stage_has_no_problem) {
  EXPECT_EQ(
      problems("%y = call aten.t(%x) : f32[6,4]{1,6} alias %x + 0\ncall aten.relu_(%y) mutates(0)", Stage::captured),
      "");
  EXPECT_EQ(problems("%y = add %x, %row : f32[4,6]\n%v = view %y + 1 : f32[4]{6}\n%z = call aten.mm(%x, %v) : f32[4]"),
            "");
  EXPECT_EQ(
      problems("%v = view %x + 1 : f32[4,5]{6,1}\n%y = fused @f(%v) : f32[4,5] {\n%1 = neg %0 : f32[4,5]\nyield %1\n}",
               Stage::fused),
      "");
}

TEST(Verify, type_rules_name_the_operand_and_both_dtypes) {
  EXPECT_EQ(problems("%y = add %x, %h : f32[4,6]"), "%y: add: operand 1 is f16 where f32 is needed");
  EXPECT_EQ(problems("%y = erf %i : i64[4,6]"), "%y: erf: the result is i64, not a float");
  EXPECT_EQ(problems("%y = erf %i : f32[4,6]"), "%y: erf: operand 0 is i64 where f32 is needed");
  EXPECT_EQ(problems("%y = lt %x, %row : f32[4,6]"), "%y: lt: the result is f32, not b8");
  EXPECT_EQ(problems("%y = lt %x, %i : b8[4,6]"), "%y: lt: operand 1 is i64 where f32 is needed");
  EXPECT_EQ(problems("%y = lt %i, 0.5 : b8[4,6]"), "%y: lt: operand 1 is the number 0.5, which i64 does not hold");
  EXPECT_EQ(problems("%y = bitwise_and %x, %x : f32[4,6]"), "%y: bitwise_and: the result is f32, not an integer or b8");
  EXPECT_EQ(problems("%y = where %x, %x, %x : f32[4,6]"), "%y: where: operand 0 is f32 where b8 is needed");
  EXPECT_EQ(problems("%y = where %b, %x, %h : f32[4,6]"), "%y: where: operand 2 is f16 where f32 is needed");
  EXPECT_EQ(problems("%y = add %i, 0.5 : i64[4,6]"), "%y: add: operand 1 is the number 0.5, which i64 does not hold");
  EXPECT_EQ(problems("%y = where %b, 1, %x : f32[4,6]\n%z = cast %i : f16[4,6]\n%w = where true, %x, 0.5 : f32[4,6]"),
            "");
}

TEST(Verify, primitives_take_the_operands_of_their_row) {
  EXPECT_EQ(problems("%y = add %x : f32[4,6]"), "%y: add takes 2 operands, has 1");
  EXPECT_EQ(problems("%y = add %x, none : f32[4,6]"), "%y: add: operand 1 is no value and no number");
  EXPECT_EQ(problems("%y = add %x, \"s\" : f32[4,6]"), "%y: add: operand 1 is no value and no number");
  EXPECT_EQ(problems("%y, %z = neg %x : f32[4,6], f32[4,6]"), "%y: neg has 2 results");
  EXPECT_EQ(problems("%y = silu %x : f32[4,6]"), "%y: silu is no primitive: the decompose pass rewrites it");
  EXPECT_EQ(problems("%y = cast %c : f32[4,6]"), "%y: cast: operand 0 is c64, which no kernel reads");
  EXPECT_EQ(problems("%y = cast %x : c64[4,6]"), "%y: cast: the result is c64, which no kernel computes");
  EXPECT_EQ(problems("%y = add %x, %k : f32[4,6]"), "%y: add: operand 1 is on cuda:0, the result on cpu");
  Graph graph = parse("graph @g on cpu (%x: f32[2]) -> (%y) { %y = neg %x : f32[2] }");
  graph.node(graph.order()[1]).as<Primitive>()->op = {};
  EXPECT_EQ(problems(graph, Stage::functional), "%y: an op that the table does not have");
}

TEST(Verify, reductions_keep_dtype_and_dims) {
  EXPECT_EQ(problems("%y = reduce sum %x over 0, 1 : f32[1,1]\n%z = reduce any %b over 1 : b8[4,1]"), "");
  EXPECT_EQ(problems("%y = reduce sum %h over 1 : f16[4,1]"), "%y: sum does not take f16");
  EXPECT_EQ(problems("%y = reduce any %x over 1 : f32[4,1]"), "%y: any does not take f32");
  EXPECT_EQ(problems("%y = reduce sum %x over 1 : f64[4,1]"), "%y: f64 of f32");
  EXPECT_EQ(problems("%y = reduce sum %x over 1 : f32[4]"), "%y: the result has sizes [4], not [4,1]");
  EXPECT_EQ(problems("%y = reduce sum %x over 2 : f32[4,1]"), "%y: its dims are not ascending dims of its operand");
  EXPECT_EQ(problems("%y = reduce sum %x over 1, 0 : f32[1,1]"), "%y: its dims are not ascending dims of its operand");
}

TEST(Verify, attentions_have_operands_of_one_kind) {
  EXPECT_EQ(problems("%y = attention %h, %h, %h scale 1.0 : f16[4,6]"), "");
  EXPECT_EQ(problems("%k2 = view %h + 0 : f16[2,6]\n%b2 = view %h + 0 : f16[1,2]\n"
                     "%y = attention %h, %k2, %k2, %b2 scale 1.0 : f16[4,6]"),
            "");
  EXPECT_EQ(problems("%y = attention %x, %x, %x scale 1.0 : f32[4,6]"), "%y: an attention gives static halves");
  EXPECT_EQ(problems("%y = attention %h, %x, %h scale 1.0 : f16[4,6]"),
            "%y: operand 1 is f32[4,6], the result f16[4,6]");
  EXPECT_EQ(problems("%y = attention %h, %h scale 1.0 : f16[4,6]"),
            "%y: an attention has queries, keys, values, and maybe a bias");
  EXPECT_EQ(problems("%k2 = view %h + 0 : f16[2,6]\n%y = attention %h, %k2, %h scale 1.0 : f16[4,6]"),
            "%y: keys or values have other sizes than the result, but for how many they are");
  EXPECT_EQ(problems("%y = attention %h, %h, %h, %h scale 1.0 : f16[4,6]"),
            "%y: the bias does not broadcast to the scores");
}

TEST(Verify, joins_add_up_along_their_dim) {
  EXPECT_EQ(problems("%y = join %x, %x over 1 : f32[4,12]"), "");
  EXPECT_EQ(problems("%y = join %x, %h over 1 : f32[4,12]"), "%y: operand 1 is f16[4,6], the result f32[4,12]");
  EXPECT_EQ(problems("%y = join %x, 1 over 1 : f32[4,12]"), "%y: operand 1 is no value");
  EXPECT_EQ(problems("%y = join %x, %x over 1 : f32[4,11]"),
            "%y: the result has sizes [4,11], its operands join to [4,12]");
  EXPECT_EQ(problems("%y = join %x, %x over 0 : f32[8,5]"), "%y: operand 0 has other sizes beside the dim");
  EXPECT_EQ(problems("%y = join %x, %x over 2 : f32[4,12]"), "%y: a join over dim 2 of 2");
}

TEST(Verify, a_host_scalar_may_join_tensors_of_a_gpu) {
  EXPECT_EQ(problems(parse("graph @g on cuda:0 (%x: f32[2], %s: f32[]@cpu) -> (%y) { %y = add %x, %s : f32[2] }"),
                     Stage::functional),
            "");
  EXPECT_EQ(problems(parse("graph @g on cuda:0 (%x: f32[2], %s: f32[1]@cpu) -> (%y) { %y = add %x, %s : f32[2] }"),
                     Stage::functional),
            "%y: add: operand 1 is on cpu, the result on cuda:0");
}

TEST(Verify, results_have_the_broadcast_sizes_of_their_operands) {
  EXPECT_EQ(problems("%y = add %x, %row : f32[6]"),
            "%y: add: the result has sizes [6], its operands broadcast to [4,6]");
  EXPECT_EQ(problems("%v = view %x + 0 : f32[4]\n%y = add %x, %v : f32[4,6]"),
            "%y: add: sizes [4,6] and [4] do not broadcast");
  EXPECT_EQ(problems("%y = neg %row : f32[4,6]"), "%y: neg: the result has sizes [4,6], its operands broadcast to [6]");
  EXPECT_EQ(problems("%y = cast 1 : f32[]"), "");
  EXPECT_EQ(problems("%y = neg %x : f32[4,6]{6,0}"), "%y: neg: the result's strides [6,0] overlap");
  EXPECT_EQ(problems("%y = neg %x : f32[4,6]{1,4}"), "");
}

TEST(Verify, views_stay_inside_their_base) {
  EXPECT_EQ(problems("%v = view %x + 1 : f32[4,6]"), "%v: the view reaches element 25 of a base that ends at 24");
  EXPECT_EQ(problems("%v = view %x + -1 : f32[4]"), "%v: a view opens 1 elements before its base");
  EXPECT_EQ(problems("%v = view %x + 0 : f16[4,6]"), "%v: a view of f32 as f16");
  EXPECT_EQ(problems("%v = view %x + 0 : f32[4]@cuda:0"), "%v: a view of cpu on cuda:0");
  EXPECT_EQ(problems("%v = view %x, %x + 0 : f32[4]"), "%v: a view has one arg, its base");
  EXPECT_EQ(problems("%v = view 3 + 0 : f32[4]"), "%v: a view has one arg, its base");
  EXPECT_EQ(problems("%v = view %x + 24 : f32[0]"), "");
}

TEST(Verify, stages_forbid_what_is_not_theirs) {
  EXPECT_EQ(problems("%y = neg %x : f32[4,6]", Stage::captured), "%y: a primitive in the captured stage");
  EXPECT_EQ(problems("%y = view %x + 0 : f32[4]", Stage::captured), "%y: a view node in the captured stage");
  EXPECT_EQ(problems("%y = fused @f(%x) : f32[4,6] { yield %0 }", Stage::functional),
            "%y: f stands outside the fused stage");
  EXPECT_EQ(problems("%y = neg %x : f32[4,6]", Stage::fused), "%y: a primitive outside a fused node");
  EXPECT_EQ(problems("call aten.relu_(%x) mutates(0)"),
            "aten::relu_: call aten::relu_ mutates an argument outside the captured stage");
  EXPECT_EQ(problems("%y = neg %x : f32[4,6] alias %x + 0"), "%y: an alias outside the captured stage");
  EXPECT_EQ(problems("%y = call aten.view_as_real(%c) : f32[4,6,2] alias %c + 0"), "");
}

TEST(Verify, aliases_point_at_the_first_value_of_a_storage) {
  const std::string chain =
      "%y = call aten.t(%x) : f32[6,4]{1,6} alias %x + 0\n%z = call aten.t(%y) : f32[4,6] alias %y + 0";
  EXPECT_EQ(problems(chain, Stage::captured), "%z: its alias %y is itself an alias");
  EXPECT_EQ(problems("call aten.relu_(3) mutates(0)", Stage::captured),
            "aten::relu_: call aten::relu_ mutates argument 0, which is no value");
  EXPECT_EQ(problems("call aten.relu_(%x) mutates(2)", Stage::captured),
            "aten::relu_: call aten::relu_ mutates argument 2, which is no value");
}

TEST(Verify, fused_bodies_agree_with_their_node) {
  const auto fused = [](std::string_view text) { return problems(text, Stage::fused); };
  EXPECT_EQ(fused("%y = fused @\"a b\"(%x) : f32[4,6] { yield %0 }"), "%y: 'a b' is no C identifier");
  EXPECT_EQ(fused("%y = fused @f(%x) : f32[4,6] { yield }"), "%y: f: the body has 0 outputs for 1 results");
  EXPECT_EQ(fused("%y = fused @f(%x) : f32[6] { yield %0 }"),
            "%y: f: the body's output 0 is f32[4,6], the node's result f32[6]");
  EXPECT_EQ(fused("%y, %z = fused @f(%x, %row) : f32[4,6], f32[6] { yield %0, %1 }"),
            "%y: f: result 1 has sizes [6], result 0 [4,6]");
  EXPECT_EQ(fused("%y = fused @f(%x) : f32[4,6] {\n%1 = add %0, %0 : f32[6]\nyield %0\n}"),
            "%y: f: %1: add: the result has sizes [6], its operands broadcast to [4,6]");
  EXPECT_EQ(fused("%y = fused @f(%x) : f32[4,6] {\n%1 = call aten.relu(%0) : f32[4,6]\nyield %1\n}"),
            "%y: f: %1: call aten::relu inside a fused body");
  EXPECT_EQ(fused("%y = fused @f(%x) : f32[4,6] {\n%1 = state 0 \"w\" : f32[4,6]\nyield %1\n}"),
            "%y: f: %1: state inside a fused body");
  EXPECT_EQ(fused("%y = fused @f(%x) : f32[4,6] {\n%1 = input 3 : f32[4,6]\nyield %1\n}"),
            "%y: f: the body's input 3 comes as number 1");
  Graph graph = parse("graph @g on cpu (%x: f32[2]) -> (%y) { %y = fused @f(%x) : f32[2] { yield %0 } }");
  graph.node(graph.order()[1]).as<Fused>()->body = nullptr;
  EXPECT_EQ(problems(graph, Stage::fused), "%y: f has no body");
}

Graph two_lines() {
  return parse("graph @g on cpu (%x: f32[2]) -> (%z) {\n%y = neg %x : f32[2]\n%z = neg %y : f32[2]\n}");
}

TEST(Verify, values_are_defined_before_their_use) {
  Graph graph = two_lines();
  const std::vector<NodeId> order = graph.order();
  graph.set_order({order[0], order[2], order[1]});
  EXPECT_EQ(problems(graph, Stage::functional), "%z: %y is used before it is defined");
  graph.set_order({order[0], order[1]});
  EXPECT_EQ(problems(graph, Stage::functional), "output 0: %undefined.2 is not defined");
}

TEST(Verify, ids_that_do_not_exist_are_found) {
  Graph graph = two_lines();
  const std::vector<NodeId> order = graph.order();
  graph.set_order({order[0], order[1], order[1], order[2]});
  EXPECT_EQ(problems(graph, Stage::functional), "node 1 stands in the order twice");
  graph.set_order({order[0], NodeId{99}});
  EXPECT_EQ(problems(graph, Stage::functional), "the order or a node's results name what does not exist");
  graph = two_lines();
  graph.node(order[1]).scope = ScopeId{5};
  EXPECT_EQ(problems(graph, Stage::functional), "%y: its scope does not exist");
  graph = two_lines();
  graph.node(order[1]).args[0] = {ValueId{77}};
  EXPECT_EQ(problems(graph, Stage::functional), "%y: a value that does not exist is used before it is defined");
  graph = two_lines();
  graph.value(graph.node(order[1]).results[0]).producer = order[2];
  EXPECT_EQ(problems(graph, Stage::functional), "%y: %y names another producer");
}

TEST(Verify, leaves_stand_once_and_types_are_well_formed) {
  EXPECT_EQ(problems("%y = input 0 : f32[2]"), "%y: input 0 stands here twice");
  EXPECT_EQ(problems("%y = state 0 \"a\" : f32[2]\n%z = state 0 \"a\" : f32[2]"), "%z: state 0 stands here twice");
  Graph graph = two_lines();
  graph.value(graph.node(graph.order()[0]).results[0]).type.strides.clear();
  EXPECT_EQ(problems(graph, Stage::functional), "%x: 1 sizes but 0 strides");
  graph.value(graph.node(graph.order()[0]).results[0]).type.strides = {-1};
  EXPECT_EQ(problems(graph, Stage::functional), "%x: dim 0 has a negative size or stride");
  graph.value(graph.node(graph.order()[0]).results[0]).type = {
      DType::f32, {int64_t{1} << 40, int64_t{1} << 40}, {1, 1}, {}};
  EXPECT_EQ(problems(graph, Stage::functional),
            "%x: more elements than 63 bits count\n%y: neg: the result has sizes [2], its operands broadcast to "
            "[1099511627776,1099511627776]");
  graph = two_lines();
  graph.node(graph.order()[0]).args = {{true}};
  EXPECT_EQ(problems(graph, Stage::functional), "%x: input 0 has args");
  graph = parse("graph @g on cpu () -> () { call \"nowhere\"() }");
  EXPECT_EQ(problems(graph, Stage::functional), "nowhere: op 'nowhere' has no namespace");
}

TEST(Verify, require_names_the_pass_and_the_stage) {
  Graph graph = two_lines();
  graph.outputs = {ValueId{9}};
  EXPECT_NO_THROW(require(two_lines(), Stage::functional, "dce"));
  try {
    require(graph, Stage::functional, "dce");
    FAIL() << "no error";
  } catch (const InternalError& error) {
    EXPECT_EQ(error.where(), "dce");
    EXPECT_STREQ(error.what(), "dce: graph @g is not functional: output 0: a value that does not exist is not defined");
  }
}

}  // namespace
}  // namespace sinter::ir
