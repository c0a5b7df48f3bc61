#pragma once

#include <c10/core/TensorImpl.h>

namespace sinter::frontend {

[[nodiscard]] bool has_tangent_in(const c10::AutogradMetaInterface& autograd);

/// True where forward-mode differentiation has put a tangent beside the data.
[[nodiscard]] inline bool has_tangent(const c10::TensorImpl& tensor) {
  return tensor.autograd_meta() != nullptr && has_tangent_in(*tensor.autograd_meta());
}

}  // namespace sinter::frontend
