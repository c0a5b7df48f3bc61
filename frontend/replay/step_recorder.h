#pragma once

#include <ATen/core/stack.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/replay/way.h"
#include "frontend/trace/call_key.h"
#include "frontend/trace/step.h"
#include "frontend/trace/tensor_table.h"

namespace sinter::frontend {

/// How a result is given again; `value_of` tells which value one is that is no argument.
[[nodiscard]] Returned returned_like(const OpFacts& facts, const c10::IValue& result,
                                     c10::ArrayRef<c10::IValue> arguments,
                                     const std::function<TraceValueId(const at::Tensor&)>& value_of);

/// Writes one operator call down as a step: what it is given before it runs, what it gave afterwards.
class StepRecorder {
 public:
  /// `call` describes the arguments, which the table knows and which are kept. `module` is the path of the module that
  /// the call belongs to, where the program states no other; or empty.
  StepRecorder(const c10::OperatorHandle& op, const OpTraits& traits, CallInWords call,
               c10::ArrayRef<c10::IValue> arguments, TensorTable& table, std::string module);

  [[nodiscard]] c10::ArrayRef<c10::IValue> arguments() const { return arguments_; }

  /// The step, once the call has run and returned `results`. Nothing where no segment can give what it gave: a tensor
  /// that is not ordinary, sees its memory in a way that the compiler does not follow, or was resized.
  [[nodiscard]] std::optional<Step> finish(c10::ArrayRef<c10::IValue> results);

 private:
  void note_writes();
  void note_raised();
  [[nodiscard]] bool are_as_they_were() const;
  [[nodiscard]] bool add_result(const at::Tensor& tensor);
  [[nodiscard]] TraceMemoryId memory_seen_by(const at::Tensor& result) const;
  [[nodiscard]] TraceValueId value_of(const at::Tensor& tensor) const;

  TensorTable& table_;
  std::vector<c10::IValue> arguments_;
  Step step_;
  std::vector<std::pair<at::Tensor, TraceValueId>> values_;  ///< of the arguments, in order, then of the results
  std::vector<Elements> written_;                            ///< of the tensors that the call writes, before it
  std::vector<int64_t> versions_;                            ///< of the same
};

}  // namespace sinter::frontend
