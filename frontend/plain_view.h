#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/_conj.h>
#include <ATen/ops/_neg_view.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <utility>

#include "frontend/libtorch_version.h"

namespace sinter::frontend {

/// What a conjugated or negated view looks at, as it lies in memory; any other tensor itself. Nothing is recorded.
[[nodiscard]] inline at::Tensor plain_view(at::Tensor tensor) {
  const c10::impl::ExcludeDispatchKeyGuard no_capture(kCaptureKey);
  if (tensor.is_conj()) tensor = at::_conj(tensor);
  if (tensor.is_neg()) tensor = at::_neg_view(tensor);
  return tensor;
}

}  // namespace sinter::frontend
