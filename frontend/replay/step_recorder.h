#pragma once

#include <ATen/core/stack.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/replay/way.h"
#include "frontend/trace/step.h"
#include "frontend/trace/tensor_table.h"

namespace sinter::frontend {

/// How a result is given again. The table knows its tensors.
[[nodiscard]] Returned returned_like(const OpFacts& facts, const c10::IValue& result,
                                     c10::ArrayRef<c10::IValue> arguments, const TensorTable& table);

/// Writes one operator call down as a step: what it is given before it runs, what it gave afterwards.
class StepRecorder {
 public:
  /// `key` and `words` (where each argument stands in it) describe the arguments, which the table knows. They are
  /// kept. `module` is the path of the module that the call belongs to, where the program states no other; or empty.
  StepRecorder(const c10::OperatorHandle& op, const OpTraits& traits, CallKey key, std::span<const uint32_t> words,
               c10::ArrayRef<c10::IValue> arguments, TensorTable& table, std::string module);

  [[nodiscard]] c10::ArrayRef<c10::IValue> arguments() const { return arguments_; }

  /// The step, once the call has run and returned `results`. Nothing where no segment can give what it gave: a tensor
  /// that is not ordinary, sees its memory in a way that the compiler does not follow, or was resized.
  [[nodiscard]] std::optional<Step> finish(c10::ArrayRef<c10::IValue> results);

 private:
  void note_writes();
  [[nodiscard]] bool are_as_they_were() const;
  [[nodiscard]] bool add_result(const at::Tensor& tensor);

  TensorTable& table_;
  std::vector<c10::IValue> arguments_;
  Step step_;
  std::vector<Elements> written_;  ///< of the tensors that the call writes, before it
};

}  // namespace sinter::frontend
