#include "frontend/torch/tangent.h"

#include <torch/csrc/autograd/forward_grad.h>
#include <torch/csrc/autograd/variable.h>

namespace sinter::frontend {

bool has_tangent_in(const c10::AutogradMetaInterface& autograd) {
  const auto& meta = static_cast<const torch::autograd::AutogradMeta&>(autograd);
  return meta.fw_grad_ != nullptr && !meta.fw_grad_->empty();
}

}  // namespace sinter::frontend
