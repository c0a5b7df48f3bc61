#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/_conj.h>
#include <ATen/ops/_neg_view.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "compiler/ir/reading.h"
#include "frontend/torch/libtorch_version.h"

namespace sinter::frontend {

[[nodiscard]] inline ir::Reading reading_of(const at::Tensor& tensor) { return {tensor.is_conj(), tensor.is_neg()}; }

/// The tensor, or a view of it with the bits that make it read its memory in this way. Nothing is recorded.
[[nodiscard]] inline at::Tensor read_as(at::Tensor tensor, ir::Reading reading) {
  const ir::Reading now = reading_of(tensor);
  if (now == reading) return tensor;
  const c10::impl::ExcludeDispatchKeyGuard no_hook(kHookKeys);
  if (now.conjugated != reading.conjugated) tensor = at::_conj(tensor);
  if (now.negated != reading.negated) tensor = at::_neg_view(tensor);
  return tensor;
}

/// What a conjugated or negated view looks at, as it lies in memory; any other tensor itself.
[[nodiscard]] inline at::Tensor plain_view(const at::Tensor& tensor) { return read_as(tensor, {}); }

}  // namespace sinter::frontend
