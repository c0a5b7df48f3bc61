#pragma once

#include <ATen/core/ivalue.h>

#include <optional>

#include "frontend/torch/call_argument.h"
#include "frontend/trace/step.h"
#include "frontend/trace/tensor_table.h"

namespace sinter::frontend {

/// A call in words, as a step is recorded.
struct CallInWords {
  CallKey key{};
  c10::SmallVector<uint32_t, 8> numbers{};      ///< by argument: where its bits stand in the key, where it is a number
  c10::SmallVector<TraceValueId, 8> tensors{};  ///< those of memory, in order
};

/// Puts a call into words, and what it names into the table. A tensor that a list names twice is a memory of its own
/// each time, where nothing is written: another call may name two. Nothing for what cannot be compared: then the call
/// is no step of a segment, and the table holds a part of what it names.
[[nodiscard]] std::optional<CallInWords> in_words(const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments,
                                                  TensorTable& table);

/// The argument that says where in the storage of the first one a view begins, counted as values count: from where the
/// storage's first tensor does. Nothing where it is left out.
[[nodiscard]] std::optional<int64_t> offset_in_values(CallArguments arguments, size_t position,
                                                      const TensorTable& table);

/// An argument of a boxed call as keys have it: where it is such an offset, counted as values count.
[[nodiscard]] c10::IValue in_values(const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments, size_t position,
                                    const TensorTable& table);

/// True for a tensor that segments know: strided and dense, with memory of its own on the CPU or a CUDA device.
[[nodiscard]] bool is_dense(const at::Tensor& tensor);

/// True where it also reads what lies there as it is, not conjugated or negated.
[[nodiscard]] bool is_ordinary(const at::Tensor& tensor);

}  // namespace sinter::frontend
