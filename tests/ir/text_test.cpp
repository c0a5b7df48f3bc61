#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "compiler/ir/parse.h"
#include "compiler/ir/print.h"
#include "compiler/support/errors.h"

namespace sinter::ir {
namespace {

constexpr std::string_view everything = R"(graph @mlp on cuda:0 (%x: f16[8,768], %scale: f32[]@cpu) -> (%z, %f, %w1) {
  %w1 = state 0 "fc1.weight" : f16[3072,768]
  %b1 = state 1 "fc1.\"b\"\\\n\x01" : f16[3072]
  %c = state 2 "c" : f64[3]@cpu
  %w1_t = call aten.t(%w1) : f16[768,3072]{1,768} alias %w1 + 0  # fc1  model.cpp:21
  %h = call aten.addmm(%b1, %x, %w1_t, 1, 1) : f16[8,3072]  # fc1  model.cpp:21
  %h.1 = call aten.relu_(%h) mutates(0) functional aten.relu : f16[8,3072] alias %h + 0  # fc1
  %bits = call aten.view.dtype(%h, dtype(i16)) : i16[8,3072] alias %h + 0 align 2  # fc1
  %own = call ns.own(%x) : f16[8] align 8
  call aten.copy_(%h, [1, none, [2.0, inf, -inf, nan], true, false]) mutates(0, 1)
  %d, %e = call "odd op"("text", dtype(bf16), device(cuda:1), device(cpu), enum(memory_format, 2), opaque(0)) random impure : other[2], c64[1,0,3]@cuda:1  #   model.cpp:30
  %0 = mul %h, 0.70710678 : f16[8,3072]
  %1 = cast %c : i64[3]@cpu
  %m = reduce max %0 over 0, 1 : f16[1,1]
  %j = join %0, %0 over 1 : f16[8,6144]
  %att = attention %h, %h, %h, %0 scale 0.125 : f16[8,3072]
  %seen = attention %h, %h, %h scale 1.0 zeros causal : f16[8,3072]
  %v = view %0 + 4 : f16[s0,2*s0+s1-1]{3,0}
  %z, %f = fused @fused_mul_erf(%0, %x) : f16[8,3072], f16[8,768] {  # act
    %2 = erf %0 : f16[8,3072]
    %named = view %2 + -3 : f16[2]
    yield %2, %1
  }
}
)";

std::string message(std::string_view text) {
  try {
    (void)parse(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "parsed";
}

/// The message for one line in the body of a graph with an input %x.
std::string line_message(std::string_view line) {
  return message(fmt::format("graph @g on cpu (%x: f32[2]) -> (%x) {{\n{}\n}}", line));
}

TEST(Text, every_form_prints_as_it_was_written) { EXPECT_EQ(print(parse(everything)), everything); }

TEST(Text, white_space_and_comments_between_tokens_do_not_matter) {
  const Graph graph = parse(
      "# head\ngraph @g on cpu(%x:f32[ 2 , 3 ])->(%y){ # more\n\n%y=add %x ,\n 1 : f32[2,3]# a.b  f.cpp:1\n# "
      "end\n}\n#\n");
  EXPECT_EQ(print(graph), "graph @g on cpu (%x: f32[2,3]) -> (%y) {\n  %y = add %x, 1 : f32[2,3]  # a.b  f.cpp:1\n}\n");
}

TEST(Text, names_are_made_unique_and_unnamed_values_are_numbered) {
  Graph graph;
  const Type type = contiguous(DType::f32, {2}, {});
  ValueId last;
  for (const char* hint : {"h", "h", "", "h.1", "h", "bn 1", "7", "h.1"}) {
    last = graph.add1(State{static_cast<uint32_t>(graph.node_count()), "s"}, {}, type);
    graph.value(last).hint = hint;
  }
  graph.outputs = {last};
  const std::vector<std::string> names = value_names(graph);
  EXPECT_EQ(names, (std::vector<std::string>{"%h", "%h.1", "%0", "%h.2", "%h.3", "%bn_1", "%1", "%h.4"}));
  EXPECT_EQ(print(parse(print(graph))), print(graph));
}

TEST(Text, inputs_missing_from_the_front_keep_their_positions) {
  Graph graph;
  const ValueId x = graph.add1(Input{2}, {}, contiguous(DType::f32, {2}, {}));
  const ValueId y = graph.add1(Input{0}, {}, contiguous(DType::f32, {3}, {}));
  graph.outputs = {x, y};
  const Graph again = parse(print(graph));
  EXPECT_EQ(print(again), print(graph));
  EXPECT_EQ(again.producer(again.outputs[0]).as<Input>()->index, 2U);
}

TEST(Text, a_graph_with_undefined_values_still_prints) {
  Graph graph;
  graph.add1(Call{"aten::relu", {}, {}, false, false}, {{ValueId{7}}, {ValueId{}}}, contiguous(DType::f32, {2}, {}));
  graph.outputs = {ValueId{9}};
  EXPECT_NE(print(graph).find("%undefined.7"), std::string::npos);
}

TEST(Text, doubles_read_back_exactly) {
  std::mt19937_64 engine(1);
  std::vector<double> numbers{0.0,  -0.0,       1.0, 1e300, 5e-324, 0.1, std::numeric_limits<double>::max(),
                              1e22, -12345678.0};
  for (int i = 0; i < 1000; ++i) numbers.push_back(std::bit_cast<double>(engine()));
  for (double number : numbers) {
    if (std::isnan(number)) continue;
    const Graph graph = parse(fmt::format("graph @g on cpu () -> () {{\n  call a.b({})\n}}", to_string(number)));
    const auto* read = std::get_if<double>(&graph.node(graph.order()[0]).args[0].data);
    ASSERT_NE(read, nullptr) << to_string(number);
    EXPECT_EQ(std::bit_cast<uint64_t>(*read), std::bit_cast<uint64_t>(number)) << to_string(number);
  }
}

TEST(Text, integers_read_back_exactly) {
  for (int64_t number : {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), int64_t{0}}) {
    const Graph graph = parse(fmt::format("graph @g on cpu () -> () {{ call a.b({}) }}", number));
    EXPECT_EQ(graph.node(graph.order()[0]).args[0], Arg{number});
  }
}

TEST(Text, strides_of_dims_of_size_one_are_kept) {
  const Type type{DType::f32, {1, 4}, {9, 1}, {}};
  EXPECT_EQ(to_string(type, {}), "f32[1,4]{9,1}");
  EXPECT_EQ(parse_type("f32[1,4]{9,1}", {}), type);
}

TEST(Text, types_say_what_is_wrong_with_them) {
  const auto type_message = [](std::string_view text) {
    try {
      (void)parse_type(text, {});
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("parsed");
  };
  EXPECT_EQ(type_message("f16[8,768"),
            "type:1:10: expected ',' or ']', found the end of the text. Example: f16[8,768]");
  EXPECT_EQ(type_message("f16[2]{1,1}"), "type:1:1: 1 sizes but 2 strides");
  EXPECT_EQ(type_message("f16[-2]"), "type:1:5: sizes and strides may not be negative, found -2");
  EXPECT_EQ(type_message("f16[281474976710656,281474976710656]"), "type:1:1: the tensor is too large");
  EXPECT_EQ(type_message("f16[2] x"), "type:1:8: expected the end of the type, found 'x'. Example: f16[8,768]");
  EXPECT_EQ(type_message("f16[1.5]"), "type:1:5: expected a size, found '1.5'. Example: f16[8,768]");
  EXPECT_EQ(type_message("f16[8]@cuda:999"), "type:1:13: there is no device 999");
}

TEST(Text, errors_name_line_column_what_was_expected_and_what_was_found) {
  EXPECT_EQ(message(""),
            "ir:1:1: expected 'graph', found the end of the text. Example: graph @name on cpu (%x: f32[8]) -> (%y) {");
  EXPECT_EQ(message("graph @g on cpu (%x: }"), "ir:1:22: expected a type, found '}'. Example: f16[8,768]");
  EXPECT_EQ(message("graph @g on tpu () -> () {}"), "ir:1:13: expected a device (cpu, cuda:N or other:N), found 'tpu'");
  EXPECT_EQ(message("graph @g on cpu () -> (%y) {}"), "ir:1:24: %y is not defined here");
  EXPECT_EQ(line_message("%y = sqirt %x : f32[2]"),
            "ir:2:6: unknown op 'sqirt'. `call` opens an ATen call: call aten.relu(%x)");
  EXPECT_EQ(line_message("%y = add %x, %z : f32[2]"), "ir:2:14: %z is not defined here");
  EXPECT_EQ(line_message("%x = add %x, 1 : f32[2]"), "ir:2:1: %x is defined twice");
  EXPECT_EQ(line_message("%y = add %x, 1 : f23[2]").substr(0, 39), "ir:2:18: expected a type, found 'f23'. ");
  EXPECT_EQ(line_message("%y = add %x, 1e999 : f32[2]"), "ir:2:14: '1e999' is no number, or too large");
  EXPECT_EQ(line_message("add %x, 1 : f32[2]"), "ir:2:11: the line defines no value. Example: %y = relu %x : f32[8]");
  EXPECT_EQ(line_message("%y = attention %x, %x, %x scale 2 : f16[8,8]"),
            "ir:2:33: the scale is no real number. Example: attention %q, %k, %v scale 0.125 : f16[2,64,32]");
  EXPECT_EQ(line_message("call relu(%x)"), "ir:2:6: op 'relu' has no namespace. Example: aten.add.Tensor");
  EXPECT_EQ(line_message("call aten.foo(%x, ?)").substr(0, 42), "ir:2:19: expected an argument, found '?'. ");
  EXPECT_EQ(line_message("%y = fused @f(%x, 1) : f32[2] { yield %0 }"),
            "ir:2:15: a fused node takes values only. Example: fused @f(%x, %y)");
  EXPECT_EQ(line_message("%y = call a.b(%x) : f32[2] align 3"), "ir:2:34: an alignment is a power of two");
  EXPECT_EQ(line_message("call a.b(\"x"),
            "ir:2:12: expected a closing '\"', found the end of the line. Example: %x, 2, 0.5, true, none, [1, 2], "
            "\"text\" or dtype(f16)");
}

TEST(Text, nesting_too_deep_is_an_error_and_no_overflow) {
  EXPECT_EQ(line_message("call a.b(" + std::string(100000, '[')), "ir:2:26: lists nest too deep");
  std::string nested = "graph @g on cpu (%x: f32[2]) -> (%x) {\n";
  for (int i = 0; i < 10000; ++i) nested += fmt::format("%y{} = fused @f({}) : f32[2] {{\n", i, i == 0 ? "%x" : "%0");
  EXPECT_NE(message(nested).find("fused bodies nest too deep"), std::string::npos);
}

std::string mutated(std::string text, std::mt19937_64& engine) {
  const auto draw = [&](size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(engine); };
  constexpr std::string_view tokens =
      "%x %h.1 [ ] { } ( ) , : = # @ \" \\ - + * . 0 9 s0 f16 call fused yield alias nan \n \x01 \xff";
  for (size_t edits = 1 + draw(4); edits > 0; --edits) {
    const size_t at = draw(text.size());
    switch (draw(5)) {
      case 0:
        text.erase(at, 1 + draw(12));
        break;
      case 1:
        text.insert(at, tokens.substr(draw(tokens.size()), 1 + draw(4)));
        break;
      case 2:
        text[at] = static_cast<char>(draw(256));
        break;
      case 3:
        text.insert(at, text.substr(draw(text.size()), 1 + draw(60)));
        break;
      default:
        text.resize(std::max<size_t>(at, 1));
        break;
    }
    if (text.empty()) return " ";
  }
  return text;
}

TEST(Text, mutated_text_parses_or_says_where_it_is_broken) {
  int parsed = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    std::mt19937_64 engine(seed);
    const std::string text = mutated(std::string(everything), engine);
    try {
      const std::string once = print(parse(text));
      ASSERT_EQ(print(parse(once)), once) << "seed " << seed << "\n" << text;
      ++parsed;
    } catch (const UserError& error) {
      ASSERT_EQ(std::string_view(error.what()).substr(0, 3), "ir:") << "seed " << seed << ": " << error.what();
    }
  }
  EXPECT_GT(parsed, 20);
}

}  // namespace
}  // namespace sinter::ir
