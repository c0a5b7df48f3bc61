#include <gtest/gtest.h>

#include <set>
#include <string>

#include "compiler/ir/expression.h"
#include "compiler/support/errors.h"

namespace sinter::ir {

namespace {

/// Checks that every "{...}" of a template is one of `holes` or an operand.
void expect_holes(const OpRow& entry, std::string_view text, const std::set<std::string_view>& holes) {
  for (size_t open = text.find('{'); open != std::string_view::npos; open = text.find('{', open + 1)) {
    const size_t close = text.find('}', open);
    ASSERT_NE(close, std::string_view::npos) << entry.name << ": " << text;
    const std::string_view hole = text.substr(open + 1, close - open - 1);
    const bool operand = hole.size() == 1 && hole[0] >= '0' && hole[0] < '0' + entry.arity;
    EXPECT_TRUE(operand || holes.contains(hole)) << entry.name << ": " << hole;
  }
}

/// Every operand of the row stands in the text.
void expect_operands(const OpRow& entry, std::string_view text) {
  for (char operand = '0'; operand < '0' + entry.arity; ++operand) {
    const std::string hole = {'{', operand, '}'};
    EXPECT_NE(text.find(hole), std::string_view::npos) << entry.name << ": " << text;
  }
}

void expect_llvm(const OpRow& entry, std::string_view text) {
  for (const std::string_view prefix : {"call:", "intrinsic:", "inverse:", "scalar:"}) {
    if (!text.starts_with(prefix)) continue;
    EXPECT_GT(text.size(), prefix.size()) << entry.name;
    EXPECT_EQ(text.find_first_of("{} "), std::string_view::npos) << entry.name << ": " << text;
    return;
  }
  expect_holes(entry, text, {"r", "t", "mask"});
  expect_operands(entry, text);
  EXPECT_NE(text.find("{r} = "), std::string_view::npos) << entry.name;
}

void collect_calls(const Expression& expression, std::set<uint32_t>& calls) {
  if (expression.kind == Expression::Kind::call) calls.insert(expression.op.index);
  for (const Expression& operand : expression.operands) collect_calls(operand, calls);
}

std::set<uint32_t> calls_of(uint32_t index) {
  std::set<uint32_t> calls;
  for (const Alternative& alternative : alternatives(OpId{index})) collect_calls(alternative.expression, calls);
  return calls;
}

uint32_t row_count() { return static_cast<uint32_t>(op_table().size()); }

}  // namespace

TEST(OpTable, names_are_unique_and_find_their_row) {
  std::set<std::string_view> names;
  for (uint32_t i = 0; i < row_count(); ++i) {
    const OpRow& entry = row(OpId{i});
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_EQ(find_op(entry.name), OpId{i}) << entry.name;
    EXPECT_EQ(op_named(entry.name), OpId{i});
  }
}

TEST(OpTable, aten_names_belong_to_one_row_and_find_it_with_overloads_and_in_place) {
  for (uint32_t i = 0; i < row_count(); ++i) {
    for (const std::string_view name : row(OpId{i}).aten) {
      EXPECT_TRUE(name.starts_with("aten::")) << name;
      EXPECT_EQ(find_aten(name), OpId{i}) << name;
      if (name.find('.') != std::string_view::npos) continue;
      EXPECT_EQ(find_aten(std::string(name) + ".SomeOverload"), OpId{i}) << name;
      if (name.ends_with("_")) continue;
      EXPECT_EQ(find_aten(std::string(name) + "_.Tensor"), OpId{i}) << name;
    }
  }
}

TEST(OpTable, an_overload_of_its_own_wins_over_the_base_name) {
  EXPECT_EQ(row(find_aten("aten::div.Tensor_mode").value()).name, "div_rounded");
  EXPECT_EQ(row(find_aten("aten::div_.Tensor_mode").value()).name, "div_rounded");
  EXPECT_EQ(row(find_aten("aten::div.Tensor").value()).name, "div");
}

TEST(OpTable, unknown_names_are_not_found) {
  EXPECT_FALSE(find_op("no_such_op"));
  EXPECT_FALSE(find_aten("aten::addmm"));
  EXPECT_FALSE(find_aten("aten::_"));
  EXPECT_FALSE(find_aten(""));
  EXPECT_THROW((void)op_named("no_such_op"), InternalError);
}

TEST(OpTable, native_rows_have_complete_texts_with_known_placeholders) {
  for (const OpRow& entry : op_table()) {
    if (!entry.is_native()) continue;
    const Native& native = entry.native();
    EXPECT_NE(native.reference, nullptr) << entry.name;
    for (const std::string_view text : {native.cuda, native.cuda_text(DType::i32)}) {
      expect_operands(entry, text);
      expect_holes(entry, text, {"t"});
    }
    if (entry.rule == TypeRule::cast) continue;
    const LlvmText& llvm = native.llvm;
    for (const std::string_view text : {llvm.floating, llvm.signed_int, llvm.unsigned_int, llvm.boolean}) {
      if (!text.empty()) expect_llvm(entry, text);
    }
    EXPECT_EQ(entry.rule == TypeRule::floating || entry.rule == TypeRule::float_like,
              llvm.signed_int.empty() && llvm.boolean.empty())
        << entry.name;
  }
}

TEST(OpTable, decompositions_parse_and_never_refer_to_themselves) {
  std::vector<std::set<uint32_t>> reach(row_count());
  for (uint32_t i = 0; i < row_count(); ++i) {
    if (row(OpId{i}).is_native()) continue;
    EXPECT_FALSE(alternatives({i}).empty()) << row(OpId{i}).name;
    reach[i] = calls_of(i);
  }
  for (uint32_t middle = 0; middle < row_count(); ++middle) {
    for (uint32_t i = 0; i < row_count(); ++i) {
      if (reach[i].contains(middle)) reach[i].insert(reach[middle].begin(), reach[middle].end());
    }
  }
  for (uint32_t i = 0; i < row_count(); ++i) EXPECT_FALSE(reach[i].contains(i)) << row(OpId{i}).name;
}

TEST(OpTable, rows_without_an_aten_name_are_used_by_another_row_or_a_rule_of_decompose) {
  std::set<uint32_t> used = {op_named("ratio").index};
  for (uint32_t i = 0; i < row_count(); ++i) {
    if (!row(OpId{i}).is_native()) used.merge(calls_of(i));
  }
  for (uint32_t i = 0; i < row_count(); ++i) {
    EXPECT_TRUE(!row(OpId{i}).aten.empty() || used.contains(i)) << row(OpId{i}).name;
  }
}

}  // namespace sinter::ir
