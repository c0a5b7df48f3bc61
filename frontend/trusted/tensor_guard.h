#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "frontend/trace/elements.h"

namespace sinter::frontend {

/// What must be as it was of one tensor, its contents aside.
class TensorGuard {
 public:
  explicit TensorGuard(const at::Tensor& tensor);
  [[nodiscard]] bool holds(const at::Tensor& tensor) const;
  [[nodiscard]] const Elements& elements() const { return elements_; }
  [[nodiscard]] bool requires_grad() const { return requires_grad_; }
  bool operator==(const TensorGuard&) const = default;

 private:
  uint64_t keys_;  ///< dispatch keys: layout, wrappers, inference tensor
  c10::Device device_;
  Elements elements_;
  bool requires_grad_;
};

/// True for a dense strided tensor with memory on the CPU or a CUDA device, and without a tangent.
[[nodiscard]] bool is_guardable(const at::Tensor& tensor);

}  // namespace sinter::frontend
