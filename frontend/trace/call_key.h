#pragma once

#include <ATen/core/ivalue.h>

#include "frontend/trace/step.h"
#include "frontend/trace/tensor_table.h"

namespace sinter::frontend {

/// Appends an argument of a call to its key, and what it names to the table. False for what cannot be compared: then
/// the call is no step of a segment.
[[nodiscard]] bool append(const c10::IValue& argument, TensorTable& table, CallKey& key);

/// True for a tensor that segments know: strided and dense, with memory of its own on the CPU or a CUDA device, read as
/// it lies there.
[[nodiscard]] bool is_ordinary(const at::Tensor& tensor);

}  // namespace sinter::frontend
