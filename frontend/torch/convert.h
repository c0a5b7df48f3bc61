#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "compiler/ir/arg.h"
#include "compiler/ir/type.h"

/// What LibTorch and the IR say about the same thing, in both directions. Everything here is thread-safe, and pure but
/// for the current device.
namespace sinter::frontend {

[[nodiscard]] ir::DType dtype_of(at::ScalarType type);                        ///< `other` for what the IR does not know
[[nodiscard]] std::optional<at::ScalarType> scalar_type_of(ir::DType dtype);  ///< nothing for `other`
/// The calling thread's current CUDA device; nothing where there is none.
[[nodiscard]] std::optional<c10::Device> current_cuda_device();
/// A CUDA device without an index is the current one.
[[nodiscard]] ir::Device device_of(c10::Device device);
[[nodiscard]] c10::Device device_of(ir::Device device);
/// Dtype, sizes, strides and device of a strided tensor.
[[nodiscard]] ir::Type type_of(const at::Tensor& tensor);

/// How many writes into a tensor autograd has counted; 0 for an undefined one, and for one of inference mode, which
/// counts none.
[[nodiscard]] int64_t version_of(const at::Tensor& tensor);

/// Gives the value a tensor argument stands for (or another description of it).
using TensorToArg = std::function<ir::Arg(const at::Tensor&)>;
/// Describes an argument of an operator. `declared` is the schema's real type: it tells dtypes, layouts and memory
/// formats, which travel as integers. Undefined tensors are None. What the IR cannot describe is appended to `opaques`.
[[nodiscard]] ir::Arg arg_of(const c10::IValue& value, const c10::Type& declared, const TensorToArg& tensor,
                             std::vector<c10::IValue>& opaques);

/// Gives the tensor a value stands for.
using ValueToTensor = std::function<at::Tensor(ir::ValueId)>;
/// The inverse: builds what a boxed call expects for an argument of type `declared` (the schema's real type).
/// A number where a tensor is declared becomes a wrapped number, as in `x * 2`. Throws InternalError when the argument
/// does not fit the type.
[[nodiscard]] c10::IValue ivalue_of(const ir::Arg& arg, const c10::Type& declared, const ValueToTensor& tensor,
                                    std::span<const c10::IValue> opaques);

/// The tensors a call returned, as an ir::Call counts its results: in schema order, lists opened; undefined tensors
/// and what is no tensor (sizes that attention hands to its backward) are left out.
[[nodiscard]] std::vector<at::Tensor> tensors_of(std::span<const c10::IValue> results);

/// Calls `visit` for every defined tensor in an argument or result, lists opened.
template <class Visit>
void for_each_tensor(const c10::IValue& value, Visit&& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) visit(value.toTensor());
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) for_each_tensor(item, visit);
  }
}

/// The number that a tensor like the 2 of `x * 2` stands for; nothing for every other tensor.
[[nodiscard]] std::optional<ir::Scalar> wrapped_number(const at::Tensor& tensor);
/// A 0-dim CPU tensor that holds a number.
[[nodiscard]] at::Tensor tensor_of(const ir::Scalar& number, ir::DType dtype);

}  // namespace sinter::frontend
