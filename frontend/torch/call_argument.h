#pragma once

#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>
#include <c10/core/SymIntArrayRef.h>
#include <c10/util/SmallVector.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "frontend/torch/convert.h"

namespace sinter::frontend {

/// An argument of an operator, boxed or as the C++ signature of its kernel has it: what an IValue made of it would say,
/// without making one. Refers to the tensors, lists and texts of the call. What stands for nothing, an optional without
/// value, is std::monostate.
using CallArgument =
    std::variant<std::monostate, const c10::IValue*, const at::Tensor*, bool, int64_t, double, c10::complex<double>,
                 c10::IntArrayRef, c10::ArrayRef<bool>, at::TensorList, std::string_view, c10::Device>;
using CallArguments = std::span<const CallArgument>;

inline CallArgument argument_of(const c10::IValue& value) { return &value; }
inline CallArgument argument_of(const at::Tensor& tensor) { return &tensor; }
inline CallArgument argument_of(bool flag) { return flag; }
inline CallArgument argument_of(int64_t number) { return number; }
inline CallArgument argument_of(double number) { return number; }
inline CallArgument argument_of(const c10::SymInt& number) { return number.expect_int(); }
inline CallArgument argument_of(c10::IntArrayRef numbers) { return numbers; }
inline CallArgument argument_of(c10::SymIntArrayRef numbers) { return C10_AS_INTARRAYREF_SLOW(numbers); }
template <size_t count>
CallArgument argument_of(const std::array<bool, count>& flags) {
  return c10::ArrayRef<bool>(flags);
}
inline CallArgument argument_of(at::TensorList tensors) { return tensors; }
/// A list that was not made of tensors one behind the other is none here; no step takes none for a list.
inline CallArgument argument_of(const at::ITensorListRef& tensors) {
  return tensors.isUnboxed() ? CallArgument(tensors.toUnboxed()) : CallArgument();
}
inline CallArgument argument_of(std::string_view text) { return text; }
inline CallArgument argument_of(c10::Device device) { return device; }
inline CallArgument argument_of(at::ScalarType type) { return static_cast<int64_t>(type); }
inline CallArgument argument_of(at::Layout layout) { return static_cast<int64_t>(layout); }
inline CallArgument argument_of(at::MemoryFormat format) { return static_cast<int64_t>(format); }
inline CallArgument argument_of(const at::Scalar& number) {
  if (number.isFloatingPoint()) return number.toDouble();
  if (number.isComplex()) return number.toComplexDouble();
  if (number.isBoolean()) return number.toBool();
  return number.toLong();
}
template <class T>
CallArgument argument_of(const std::optional<T>& item) {
  return item ? argument_of(*item) : CallArgument();
}
template <class T>
CallArgument argument_of(const at::OptionalArrayRef<T>& items) {
  return items ? argument_of(*items) : CallArgument();
}

/// Those of a boxed call.
using BoxedArguments = c10::SmallVector<CallArgument, 8>;
[[nodiscard]] inline BoxedArguments arguments_of(c10::ArrayRef<c10::IValue> boxed) {
  BoxedArguments arguments;
  for (const c10::IValue& value : boxed) arguments.push_back(&value);
  return arguments;
}

/// The tensor that an argument is, which may be an undefined one; null where it is none.
[[nodiscard]] inline const at::Tensor* tensor_in(const CallArgument& argument) {
  if (const auto* tensor = std::get_if<const at::Tensor*>(&argument)) return *tensor;
  const auto* boxed = std::get_if<const c10::IValue*>(&argument);
  return boxed != nullptr && (*boxed)->isTensor() ? &(*boxed)->toTensor() : nullptr;
}

/// The integer that an argument is.
[[nodiscard]] inline std::optional<int64_t> integer_in(const CallArgument& argument) {
  if (const auto* number = std::get_if<int64_t>(&argument)) return *number;
  const auto* boxed = std::get_if<const c10::IValue*>(&argument);
  if (boxed == nullptr || !(*boxed)->isInt()) return std::nullopt;
  return (*boxed)->toInt();
}

/// Calls `visit` for every defined tensor in an argument, lists opened.
template <class Visit>
void for_each_tensor(const CallArgument& argument, Visit&& visit) {
  if (const auto* boxed = std::get_if<const c10::IValue*>(&argument)) return for_each_tensor(**boxed, visit);
  if (const auto* tensor = std::get_if<const at::Tensor*>(&argument)) {
    if ((*tensor)->defined()) visit(**tensor);
  } else if (const auto* tensors = std::get_if<at::TensorList>(&argument)) {
    for (const at::Tensor& item : *tensors) {
      if (item.defined()) visit(item);
    }
  }
}

/// Arguments as IValues.
[[nodiscard]] c10::IValue boxed(const CallArgument& argument);
[[nodiscard]] std::vector<c10::IValue> boxed(CallArguments arguments);

}  // namespace sinter::frontend
