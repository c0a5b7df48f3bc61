#include "tests/ops_core/evaluate.h"

#include <gtest/gtest.h>

#include <limits>

#include "compiler/ir/reference.h"

namespace sinter::ir::test {

namespace {

/// Runs what expand builds at once; a value is an element.
class Evaluator final : public OpBuilder {
 public:
  ValueId input(const Element& element) {
    elements_.push_back(element);
    return {static_cast<uint32_t>(elements_.size() - 1)};
  }
  [[nodiscard]] const Element& element(ValueId value) const { return elements_[value.index]; }
  [[nodiscard]] DType dtype(ValueId value) const override { return element(value).dtype; }
  [[nodiscard]] bool is_number(ValueId) const override { return false; }
  [[nodiscard]] bool on_cuda() const override { return false; }

  ValueId add(OpId op, std::vector<Arg> operands, DType dtype) override {
    const OpRow& entry = row(op);
    EXPECT_TRUE(entry.is_native()) << entry.name;
    EXPECT_EQ(operands.size(), entry.arity) << entry.name;
    const DType computation = entry.rule == TypeRule::cast ? dtype : operand_dtype(entry, operands);
    std::vector<RefValue> values;
    for (size_t i = 0; i < operands.size(); ++i) values.push_back(value_of(entry, operands[i], i, computation));
    RefValue result = entry.native().reference(values, computation);
    EXPECT_EQ(is_float(dtype), std::holds_alternative<double>(result)) << entry.name;
    if (const auto* real = std::get_if<double>(&result)) result = ref::round_to(*real, dtype);
    return input({result, dtype});
  }

 private:
  [[nodiscard]] DType operand_dtype(const OpRow& entry, const std::vector<Arg>& operands) const {
    DType found = DType::other;
    for (size_t i = entry.rule == TypeRule::select ? 1 : 0; i < operands.size(); ++i) {
      if (const ValueId* value = operands[i].value()) found = dtype(*value);
    }
    if (found != DType::other) return found;
    return std::holds_alternative<double>(operands.back().data) ? DType::f32 : DType::i64;  // Numbers only: `where`.
  }

  [[nodiscard]] RefValue value_of(const OpRow& entry, const Arg& arg, size_t position, DType computation) const {
    const bool condition = entry.rule == TypeRule::select && position == 0;
    const DType wanted = condition ? DType::b8 : computation;
    if (const ValueId* value = arg.value()) {
      EXPECT_TRUE(entry.rule == TypeRule::cast || dtype(*value) == wanted) << entry.name;
      return element(*value).value;
    }
    if (const auto* real = std::get_if<double>(&arg.data)) {
      EXPECT_TRUE(is_float(wanted)) << entry.name;
      return *real;
    }
    if (const auto* flag = std::get_if<bool>(&arg.data)) return int64_t{*flag};
    EXPECT_TRUE(is_int(wanted)) << entry.name;
    return std::get<int64_t>(arg.data);
  }

  std::vector<Element> elements_;
};

struct ToArg {
  Evaluator& evaluator;
  Arg operator()(const Element& element) const { return Arg{evaluator.input(element)}; }
  template <class T>
  Arg operator()(const T& other) const {
    return Arg{other};
  }
};

std::optional<PromotionArg> promotion(const Operand& operand) {
  using enum PromotionArg::Category;
  if (const auto* element = std::get_if<Element>(&operand)) return PromotionArg{element->dtype, tensor};
  if (std::holds_alternative<bool>(operand)) return PromotionArg{DType::b8, PromotionArg::Category::number};
  if (std::holds_alternative<int64_t>(operand)) return PromotionArg{DType::i64, PromotionArg::Category::number};
  if (std::holds_alternative<double>(operand)) return PromotionArg{DType::f64, PromotionArg::Category::number};
  return std::nullopt;
}

}  // namespace

std::optional<Element> evaluate(std::string_view name, const std::vector<Operand>& args) {
  const OpId op = op_named(name);
  Evaluator evaluator;
  std::vector<Arg> converted;
  std::vector<PromotionArg> operands;
  for (const Operand& arg : args) {
    converted.push_back(std::visit(ToArg{evaluator}, arg));
    const auto operand = promotion(arg);
    if (operand && converted.size() <= row(op).arity) operands.push_back(*operand);
  }
  const auto dtypes = op_dtypes(row(op).rule, operands);
  if (!dtypes) return std::nullopt;
  const auto result = expand(op, converted, *dtypes, evaluator);
  if (!result || result->value() == nullptr) return std::nullopt;
  EXPECT_EQ(evaluator.dtype(*result->value()), dtypes->result) << name;
  return evaluator.element(*result->value());
}

Element f64(double value) { return {value, DType::f64}; }
Element f32(double value) { return {ref::round_to(value, DType::f32), DType::f32}; }
Element f16(double value) { return {ref::round_to(value, DType::f16), DType::f16}; }
Element i32(int64_t value) { return {value, DType::i32}; }
Element u8(int64_t value) { return {value, DType::u8}; }
Element b8(bool value) { return {int64_t{value}, DType::b8}; }

double number(const std::optional<Element>& element) {
  EXPECT_TRUE(element.has_value());
  return element ? ref::real(element->value) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace sinter::ir::test
