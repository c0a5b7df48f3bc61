#include "frontend/torch/convert.h"

#include <ATen/ScalarOps.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <array>
#include <utility>

#include "compiler/support/errors.h"

namespace sinter::frontend {
namespace {

constexpr std::array<std::pair<at::ScalarType, ir::DType>, 12> kDTypes{{
    {at::ScalarType::Double, ir::DType::f64},
    {at::ScalarType::Float, ir::DType::f32},
    {at::ScalarType::Half, ir::DType::f16},
    {at::ScalarType::BFloat16, ir::DType::bf16},
    {at::ScalarType::Long, ir::DType::i64},
    {at::ScalarType::Int, ir::DType::i32},
    {at::ScalarType::Short, ir::DType::i16},
    {at::ScalarType::Char, ir::DType::i8},
    {at::ScalarType::Byte, ir::DType::u8},
    {at::ScalarType::Bool, ir::DType::b8},
    {at::ScalarType::ComplexFloat, ir::DType::c64},
    {at::ScalarType::ComplexDouble, ir::DType::c128},
}};

std::vector<ir::Dim> dims_of(at::IntArrayRef numbers) { return {numbers.begin(), numbers.end()}; }

/// The type under any number of Optional layers.
const c10::Type& without_optional(const c10::Type& type) {
  const c10::Type* inner = &type;
  while (inner->kind() == c10::TypeKind::OptionalType) inner = inner->containedType(0).get();
  return *inner;
}

ir::Arg integer_arg(int64_t value, const c10::Type& declared) {
  switch (without_optional(declared).kind()) {
    case c10::TypeKind::ScalarTypeType: {
      const ir::DType dtype = dtype_of(static_cast<at::ScalarType>(value));
      if (dtype == ir::DType::other) return {ir::Enum{"dtype", value}};
      return {dtype};
    }
    case c10::TypeKind::LayoutType:
      return {ir::Enum{"layout", value}};
    case c10::TypeKind::MemoryFormatType:
      return {ir::Enum{"memory_format", value}};
    default:
      return {value};
  }
}

ir::Arg opaque_arg(const c10::IValue& value, std::vector<c10::IValue>& opaques) {
  opaques.push_back(value);
  return {ir::Opaque{static_cast<uint32_t>(opaques.size() - 1)}};
}

[[noreturn]] void misfit(const c10::Type& declared) {
  throw InternalError("convert", fmt::format("an argument does not fit the type {}", declared.str()));
}

at::Scalar scalar_of(const ir::Arg& arg, const c10::Type& declared) {
  if (const auto* flag = std::get_if<bool>(&arg.data)) return *flag;
  if (const auto* integer = std::get_if<int64_t>(&arg.data)) return *integer;
  if (const auto* real = std::get_if<double>(&arg.data)) return *real;
  misfit(declared);
}

int64_t enum_value(const ir::Arg& arg, const c10::Type& declared) {
  if (const auto* integer = std::get_if<int64_t>(&arg.data)) return *integer;
  if (const auto* enumerator = std::get_if<ir::Enum>(&arg.data)) return enumerator->value;
  const auto* dtype = std::get_if<ir::DType>(&arg.data);
  const auto type = dtype ? scalar_type_of(*dtype) : std::nullopt;
  if (!type) misfit(declared);
  return static_cast<int64_t>(*type);
}

c10::IValue list_of(const ir::ArgList& elements, const c10::Type& declared, const ValueToTensor& tensor,
                    std::span<const c10::IValue> opaques) {
  const c10::TypePtr element = declared.containedType(0);
  c10::impl::GenericList list(element->kind() == c10::TypeKind::SymIntType ? c10::IntType::get() : element);
  list.reserve(elements.size());
  for (const ir::Arg& item : elements) list.push_back(ivalue_of(item, *element, tensor, opaques));
  return c10::IValue(std::move(list));
}

}  // namespace

ir::DType dtype_of(at::ScalarType type) {
  for (const auto& [scalar_type, dtype] : kDTypes) {
    if (scalar_type == type) return dtype;
  }
  return ir::DType::other;
}

std::optional<at::ScalarType> scalar_type_of(ir::DType dtype) {
  for (const auto& [scalar_type, candidate] : kDTypes) {
    if (candidate == dtype) return scalar_type;
  }
  return std::nullopt;
}

std::optional<c10::Device> current_cuda_device() {
  if (!c10::impl::hasDeviceGuardImpl(c10::kCUDA)) return std::nullopt;
  const c10::impl::VirtualGuardImpl guard(c10::kCUDA);
  const c10::DeviceIndex devices = guard.deviceCount();
  if (devices == 0) return std::nullopt;
  if (devices == 1) return c10::Device(c10::kCUDA, 0);  // asking the driver takes as long as matching an operator
  return guard.getDevice();
}

int64_t version_of(const at::Tensor& tensor) {
  return tensor.defined() && !tensor.is_inference() ? tensor._version() : 0;
}

ir::Device device_of(c10::Device device) {
  if (device.is_cpu()) return {ir::Device::Kind::cpu, 0};
  if (!device.is_cuda()) return {ir::Device::Kind::other, device.index()};
  if (device.has_index()) return {ir::Device::Kind::cuda, device.index()};
  return {ir::Device::Kind::cuda, c10::impl::VirtualGuardImpl(c10::kCUDA).getDevice().index()};
}

c10::Device device_of(ir::Device device) {
  if (device.kind == ir::Device::Kind::cpu) return c10::Device(c10::kCPU);
  if (device.kind == ir::Device::Kind::cuda) return c10::Device(c10::kCUDA, device.index);
  throw InternalError("convert", "a device that is neither a CPU nor a CUDA device has no LibTorch name");
}

ir::Type type_of(const at::Tensor& tensor) {
  return {dtype_of(tensor.scalar_type()), dims_of(tensor.sizes()), dims_of(tensor.strides()),
          device_of(tensor.device())};
}

ir::Arg arg_of(const c10::IValue& value, const c10::Type& declared, const TensorToArg& tensor,
               std::vector<c10::IValue>& opaques) {
  if (value.isNone()) return {ir::None{}};
  if (value.isTensor()) {
    const at::Tensor& held = value.toTensor();
    return held.defined() ? tensor(held) : ir::Arg{ir::None{}};
  }
  if (value.isBool()) return {value.toBool()};
  if (value.isInt()) return integer_arg(value.toInt(), declared);
  if (value.isDouble()) return {value.toDouble()};
  if (value.isString()) return {value.toStringRef()};
  if (value.isDevice()) return {device_of(value.toDevice())};
  if (!value.isList()) return opaque_arg(value, opaques);
  const c10::Type& list_type = without_optional(declared);
  const c10::TypePtr element =
      list_type.kind() == c10::TypeKind::ListType ? list_type.containedType(0) : c10::AnyType::get();
  ir::ArgList elements;
  for (const c10::IValue& item : value.toListRef()) elements.push_back(arg_of(item, *element, tensor, opaques));
  return {std::move(elements)};
}

c10::IValue ivalue_of(const ir::Arg& arg, const c10::Type& declared, const ValueToTensor& tensor,
                      std::span<const c10::IValue> opaques) {
  const c10::Type& type = without_optional(declared);
  if (const auto* opaque = std::get_if<ir::Opaque>(&arg.data)) return opaques[opaque->index];
  if (arg.is_none()) {
    return type.kind() == c10::TypeKind::TensorType && &type == &declared ? c10::IValue(at::Tensor()) : c10::IValue();
  }
  if (const ir::ValueId* value = arg.value()) return tensor(*value);
  if (const ir::ArgList* list = arg.list()) {
    if (type.kind() != c10::TypeKind::ListType) misfit(declared);
    return list_of(*list, type, tensor, opaques);
  }
  if (const auto* text = std::get_if<std::string>(&arg.data)) return *text;
  if (const auto* device = std::get_if<ir::Device>(&arg.data)) return device_of(*device);
  switch (type.kind()) {
    case c10::TypeKind::TensorType: {
      at::Tensor number = c10::scalar_to_tensor(scalar_of(arg, declared));
      number.unsafeGetTensorImpl()->set_wrapped_number(true);
      return number;
    }
    case c10::TypeKind::NumberType:
      return scalar_of(arg, declared);
    case c10::TypeKind::FloatType:
      return scalar_of(arg, declared).toDouble();
    case c10::TypeKind::BoolType:
      return scalar_of(arg, declared).toBool();
    default:
      return arg.is_scalar() ? c10::IValue(scalar_of(arg, declared)) : c10::IValue(enum_value(arg, declared));
  }
}

std::optional<ir::Scalar> wrapped_number(const at::Tensor& tensor) {
  if (!tensor.unsafeGetTensorImpl()->is_wrapped_number() || !tensor.is_cpu()) return std::nullopt;
  switch (tensor.scalar_type()) {
    case at::kBool:
      return *tensor.const_data_ptr<bool>();
    case at::kLong:
      return *tensor.const_data_ptr<int64_t>();
    case at::kDouble:
      return *tensor.const_data_ptr<double>();
    default:
      return std::nullopt;
  }
}

at::Tensor tensor_of(const ir::Scalar& number, ir::DType dtype) {
  // A scalar refuses to be an f32 that it is beyond; ATen's kernels take it for infinite.
  const c10::Scalar scalar = std::visit(
      [&](auto value) { return dtype == ir::DType::f32 ? c10::Scalar(static_cast<float>(value)) : c10::Scalar(value); },
      number);
  return at::detail::scalar_tensor_static(scalar, scalar_type_of(dtype), at::kCPU);
}

std::vector<at::Tensor> tensors_of(std::span<const c10::IValue> results) {
  std::vector<at::Tensor> tensors;
  const auto keep = [&](const at::Tensor& tensor) {
    if (tensor.defined()) tensors.push_back(tensor);
  };
  for (const c10::IValue& result : results) {
    if (result.isTensor()) {
      keep(result.toTensor());
    } else if (result.isTensorList()) {
      for (const at::Tensor& tensor : result.toTensorVector()) keep(tensor);
    }
  }
  return tensors;
}

}  // namespace sinter::frontend
