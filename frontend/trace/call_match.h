#pragma once

#include <c10/util/SmallVector.h>

#include "frontend/torch/call_argument.h"
#include "frontend/trace/step.h"
#include "frontend/trace/tensor_table.h"

namespace sinter::frontend {

/// The numbers of a call that is a step but for these.
struct CallNumbers {
  c10::SmallVector<uint64_t, 4> bits{};  ///< in the order of the step's numbers
  uint64_t differing = 0;                ///< a bit for each that is not the recorded one
};

/// True where a call with these arguments is the step: everything is the same, but for the step's numbers, and it
/// refuses none of its data. What the step takes is added to the table then; else the table may hold a part of it, to
/// be taken back by forget_added().
[[nodiscard]] bool is_call_of(const Step& step, CallArguments arguments, TensorTable& table, CallNumbers& numbers);

}  // namespace sinter::frontend
