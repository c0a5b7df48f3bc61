#pragma once

#include <ATen/core/stack.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/replay/way.h"
#include "frontend/trace/step.h"
#include "frontend/trace/tensor_table.h"

namespace sinter::frontend {

/// Writes one operator call down as a step: what it is given before it runs, what it gave afterwards.
class StepRecorder {
 public:
  /// The path of the module that a tensor belongs to; empty where none is known.
  using ModuleOf = std::function<std::string(const at::Tensor&)>;

  /// `key` and `words` (where each argument stands in it) describe the arguments, which the table knows. They are kept.
  StepRecorder(const c10::OperatorHandle& op, const OpTraits& traits, CallKey key, std::span<const uint32_t> words,
               c10::ArrayRef<c10::IValue> arguments, TensorTable& table, const ModuleOf& module_of);

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
