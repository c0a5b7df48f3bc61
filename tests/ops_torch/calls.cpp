#include "calls.h"

#include <ATen/ops/clone.h>

#include <algorithm>
#include <set>

namespace sinter::test {
namespace {

using c10::IValue;
using c10::TypeKind;

struct Choice {
  std::variant<Operand, IValue> value;
  std::string label;
};
using Choices = std::vector<Choice>;

/// What one argument is called with, where the schema alone does not say enough.
struct Special {
  std::string_view op;  ///< with its overload, or without for all overloads
  std::string_view argument;
  Choices choices;
};

Choice number(double value) {
  auto text = std::to_string(value);
  return {IValue(at::Scalar(value)), text};
}
Choice number(int64_t value) { return {IValue(at::Scalar(value)), std::to_string(value)}; }
Choice integer(int64_t value) { return {IValue(value), std::to_string(value)}; }
Choice flag(bool value) { return {IValue(value), value ? "true" : "false"}; }
Choice text(const char* value) { return {IValue(value), value}; }
Choice none() { return {IValue(), "none"}; }
Choice tensor(Operand operand) {
  constexpr std::array names{"first", "second", "third", "divisor", "shift", "small", "mask", "single", "other_kind"};
  return {operand, names[static_cast<size_t>(operand)]};
}

Choices dtypes() {
  Choices all;
  for (const auto type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort, at::kChar,
                          at::kByte, at::kBool})
    all.push_back({IValue(static_cast<int64_t>(type)), c10::toString(type)});
  return all;
}

const std::vector<Special>& specials() {
  static const std::vector<Special> all{
      {"aten::_to_copy", "self", {tensor(Operand::small)}},
      {"aten::_to_copy", "dtype", dtypes()},
      {"aten::where", "condition", {tensor(Operand::mask)}},
      {"aten::masked_fill", "mask", {tensor(Operand::mask)}},
      {"aten::masked_fill.Tensor", "value", {tensor(Operand::single)}},
      {"aten::native_dropout_backward", "mask", {tensor(Operand::mask)}},
      {"aten::leaky_relu_backward", "self_is_result", {flag(false)}},
      {"aten::gelu_backward", "approximate", {text("none"), text("tanh")}},
      {"aten::gelu", "approximate", {text("none"), text("tanh")}},
      {"aten::div", "rounding_mode", {none(), text("trunc"), text("floor")}},
      {"aten::round.decimals", "decimals", {integer(0), integer(2), integer(-1)}},
      {"aten::pow.Tensor_Scalar",
       "exponent",
       {number(int64_t{0}), number(int64_t{1}), number(int64_t{2}), number(int64_t{3}), number(int64_t{5}),
        number(-1.0), number(-2.0), number(0.5), number(-0.5), number(2.5), number(int64_t{-3})}},
      {"aten::clamp", "min", {none(), number(int64_t{2})}},
      {"aten::clamp", "max", {none(), number(int64_t{50}), number(2.5)}},
      {"aten::clamp.Tensor", "min", {none(), tensor(Operand::second)}},
      {"aten::clamp.Tensor", "max", {none(), tensor(Operand::third)}},
  };
  return all;
}

std::string base_of(std::string_view op) {
  std::string base(op.substr(0, op.find('.')));
  if (base.ends_with('_') && !base.ends_with("__")) base.pop_back();
  return base;
}

/// The more exact entry wins.
const Choices* special(const std::string& op, const std::string& argument) {
  const auto dot = op.find('.');
  const auto exact = base_of(op) + (dot == std::string::npos ? "" : op.substr(dot));
  for (const auto& wanted : {exact, base_of(op)}) {
    for (const auto& entry : specials()) {
      if (entry.op == wanted && entry.argument == argument) return &entry.choices;
    }
  }
  return nullptr;
}

Choices tensors(size_t position, ir::Domain domain) {
  if (position == 0) return {tensor(Operand::first)};
  if (position == 2) return {tensor(Operand::third)};
  if (domain == ir::Domain::nonzero_second) return {tensor(Operand::divisor), tensor(Operand::other_kind)};
  return {tensor(Operand::second), tensor(Operand::other_kind)};
}

Choices choices(const std::string& op, const c10::Argument& argument, size_t position, ir::Domain domain) {
  if (const auto* found = special(op, argument.name())) return *found;
  const auto* type = argument.type().get();
  const auto optional = argument.type()->cast<c10::OptionalType>();
  if (optional) type = optional->getElementType().get();
  Choices all;
  if (type->kind() == TypeKind::TensorType) return tensors(position, domain);
  if (argument.default_value()) all.push_back({*argument.default_value(), "default"});
  if (type->kind() == TypeKind::NumberType) {
    all.push_back(number(int64_t{3}));
    all.push_back(number(0.75));
  }
  if (type->kind() == TypeKind::FloatType) all.push_back({IValue(0.25), "0.25"});
  return all;
}

bool is_tensor(const c10::Argument& argument) { return argument.type()->kind() == TypeKind::TensorType; }
bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

/// Functional forms, and in-place forms that write to their first argument.
bool is_called(const c10::FunctionSchema& schema) {
  const auto& args = schema.arguments();
  if (schema.returns().size() != 1 || !is_tensor(schema.returns()[0])) return false;
  if (std::none_of(args.begin(), args.end(), is_tensor)) return false;
  return std::none_of(args.begin() + 1, args.end(), is_written);
}

/// Several choices for several arguments vary one after another, not all together: enough to see each of them.
void add_calls(const c10::OperatorHandle& op, const ir::OpRow& row, std::vector<Call>& calls) {
  const auto& schema = op.schema();
  const auto name = toString(op.operator_name());
  std::vector<Choices> by_position;
  size_t most = 1;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    by_position.push_back(choices(name, schema.arguments()[i], i, row.domain));
    if (by_position.back().empty()) return;
    most = std::max(most, by_position.back().size());
  }
  std::set<std::string> seen;
  for (size_t turn = 0; turn < most; ++turn) {
    Call call{.op = op,
              .row = &row,
              .args = {},
              .in_place = is_written(schema.arguments()[0]),
              .first_choice = turn == 0,
              .label = name + "("};
    for (const auto& options : by_position) {
      const auto& choice = options[turn % options.size()];
      call.args.push_back(choice.value);
      call.label += (call.args.size() == 1 ? "" : ", ") + choice.label;
    }
    call.label += ")";
    if (seen.insert(call.label).second) calls.push_back(std::move(call));
  }
}

/// The row a call of this op belongs to; nothing where the op is no part of the table.
const ir::OpRow* row_of(const c10::OperatorName& name) {
  const auto found = ir::find_aten(toString(name));
  if (!found || (name.name.ends_with("_out") || name.overload_name.ends_with("out"))) return nullptr;
  return &ir::row(*found);
}

}  // namespace

at::Tensor Call::operator()(const std::vector<at::Tensor>& operands) const {
  torch::jit::Stack stack;
  for (const auto& arg : args) {
    const auto* operand = std::get_if<Operand>(&arg);
    stack.push_back(operand != nullptr ? IValue(operands[static_cast<size_t>(*operand)]) : std::get<IValue>(arg));
  }
  if (in_place) stack[0] = at::clone(stack[0].toTensor());
  op.callBoxed(stack);
  return stack.at(0).toTensor();
}

std::string Call::name() const { return toString(op.operator_name()); }

std::string Call::base_name() const { return base_of(name()); }

std::vector<Call> all_calls() {
  std::vector<Call> calls;
  auto& dispatcher = c10::Dispatcher::singleton();
  auto names = dispatcher.getAllOpNames();
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return toString(a) < toString(b); });
  for (const auto& name : names) {
    const auto* row = row_of(name);
    const auto op = row == nullptr ? std::nullopt : dispatcher.findSchema(name);
    if (op && is_called(op->schema())) add_calls(*op, *row, calls);
  }
  return calls;
}

}  // namespace sinter::test
