#include "frontend/torch/tangent.h"

#include <torch/csrc/autograd/forward_grad.h>
#include <torch/csrc/autograd/variable.h>

namespace sinter::frontend {

bool has_tangent(const c10::TensorImpl& tensor) {
  const auto* autograd = static_cast<const torch::autograd::AutogradMeta*>(tensor.autograd_meta());
  return autograd != nullptr && autograd->fw_grad_ != nullptr && !autograd->fw_grad_->empty();
}

}  // namespace sinter::frontend
