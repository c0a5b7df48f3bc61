#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/support/report.h"

namespace sinter::frontend {

/// Dtype, device, dispatch keys, sizes and strides of one tensor: what guards on inputs and on state have in common.
struct LayoutGuard {
  at::ScalarType dtype{};
  c10::Device device{c10::kCPU};
  uint64_t keys = 0;  ///< dispatch keys: layout, wrappers, inference tensor
  c10::SmallVector<int64_t, 5> sizes;
  c10::SmallVector<int64_t, 5> strides;

  explicit LayoutGuard(const c10::TensorImpl& tensor);
  [[nodiscard]] bool holds(const c10::TensorImpl& tensor) const;
  [[nodiscard]] bool same_sizes(const c10::TensorImpl& tensor) const;  ///< and dispatch keys
  /// True when nothing but sizes and strides differs; ranks are equal.
  [[nodiscard]] bool holds_but_for_sizes(const c10::TensorImpl& tensor) const;
  /// Adds every difference, by name.
  void misses(const std::string& subject, const c10::TensorImpl& tensor, std::vector<GuardMiss>& out) const;
  /// "f16[1,3,224,224]", without the device.
  [[nodiscard]] std::string text() const;
};

/// "yes" or "no".
[[nodiscard]] const char* yes_no(bool value);

}  // namespace sinter::frontend
