#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "frontend/trace/step.h"

namespace sinter::frontend {

/// Asks LibTorch's kernels for the meta device, which know sizes and compute nothing, what the results of steps look
/// like; and rules of our own (layout_rules.h) about operators that have none. Dtypes depend on no size. Takes the
/// steps of one path in order. Not thread-safe.
class MetaCheck {
 public:
  enum class Answer : uint8_t {
    agrees,   ///< sizes, strides and places of the results are those of the step
    differs,  ///< one of them is not
    unknown,  ///< the operator has neither
  };
  [[nodiscard]] Answer add(const Step& step);
  /// Takes a step without asking about it.
  void pass(const Step& step);

 private:
  [[nodiscard]] at::Tensor tensor(uint32_t value) const;
  [[nodiscard]] bool looks_like(const at::Tensor& result, uint32_t value) const;

  std::vector<TraceValue> values_;
};

}  // namespace sinter::frontend
