#include "frontend/model_file/operator_call.h"

#include <ATen/ScalarOps.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace sinter::frontend {
namespace {

using c10::IValue;
using c10::TypeKind;

const c10::Type& without_optional(const c10::Type& type) {
  return type.kind() == TypeKind::OptionalType ? *type.containedType(0) : type;
}

bool is_number(const IValue& value) {
  return value.isInt() || value.isDouble() || value.isBool() || value.isComplexDouble();
}

IValue wrapped_number(const IValue& value) {
  at::Tensor number = c10::scalar_to_tensor(value.toScalar());
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  return number;
}

IValue as_type(const IValue& value, const c10::Type& type, std::optional<int32_t> count, const ModelMove& move) {
  if (value.isDevice()) return value.toDevice().type() == move.from.type() ? IValue(move.to) : value;
  if (!is_number(value)) return value;
  switch (type.kind()) {
    case TypeKind::TensorType:
      return wrapped_number(value);
    case TypeKind::FloatType:
      return value.toScalar().toDouble();
    case TypeKind::IntType:
      return value.isBool() ? IValue(int64_t{value.toBool()}) : value;
    case TypeKind::ListType: {
      c10::impl::GenericList list(type.containedType(0));
      for (int32_t i = 0; i < count.value_or(1); ++i) {
        list.push_back(as_type(value, *type.containedType(0), std::nullopt, move));
      }
      return list;
    }
    default:
      return value;
  }
}

/// A dtype that the program names, as the model's own where it means that.
IValue converted(const IValue& value, const c10::Argument& declared, const ModelMove& move) {
  const bool names_dtype = without_optional(*declared.real_type()).kind() == TypeKind::ScalarTypeType;
  if (!names_dtype || !value.isInt() || !move.from_dtype || !move.to_dtype) return value;
  return value.toScalarType() == *move.from_dtype ? IValue(*move.to_dtype) : value;
}

}  // namespace

IValue evaluate(const ExportedArgument& argument, const c10::Type& declared, std::optional<int32_t> count,
                const SlotValues& values, const ModelMove& move) {
  const c10::Type& type = without_optional(declared);
  if (const Slot* slot = argument.slot()) return as_type(values[slot->index], type, count, move);
  if (const IValue* constant = argument.constant()) return as_type(*constant, type, count, move);
  const auto* items = argument.list();
  if (items == nullptr) throw std::invalid_argument("a graph stands where a value is wanted");
  const bool is_list = type.kind() == TypeKind::ListType;
  const c10::TypePtr element = is_list ? type.containedType(0) : c10::AnyType::get();
  c10::impl::GenericList list(element);
  for (const ExportedArgument& item : *items) list.push_back(evaluate(item, *element, std::nullopt, values, move));
  return list;
}

OperatorCall::OperatorCall(const ExportedNode& node, c10::OperatorHandle op) : op_(std::move(op)) {
  const c10::FunctionSchema& schema = op_.schema();
  size_t used = 0;
  for (const c10::Argument& declared : schema.arguments()) {
    const auto given = std::ranges::find(node.inputs, declared.name(), &NamedArgument::name);
    if (given != node.inputs.end()) {
      arguments_.push_back(given->argument);
      ++used;
    } else if (declared.default_value()) {
      arguments_.push_back({*declared.default_value()});
    } else {
      throw std::invalid_argument(fmt::format("the argument '{}' is missing", declared.name()));
    }
  }
  if (used != node.inputs.size()) throw std::invalid_argument("it has arguments that this LibTorch does not know");
}

torch::jit::Stack OperatorCall::run(const SlotValues& values, const ModelMove& move) const {
  const auto& declared = op_.schema().arguments();
  torch::jit::Stack stack;
  stack.reserve(arguments_.size());
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const IValue value = evaluate(arguments_[i], *declared[i].type(), declared[i].N(), values, move);
    stack.push_back(converted(value, declared[i], move));
  }
  op_.callBoxed(stack);
  return stack;
}

}  // namespace sinter::frontend
