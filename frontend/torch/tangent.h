#pragma once

#include <c10/core/TensorImpl.h>

namespace sinter::frontend {

/// True where forward-mode differentiation has put a tangent beside the data.
[[nodiscard]] bool has_tangent(const c10::TensorImpl& tensor);

}  // namespace sinter::frontend
