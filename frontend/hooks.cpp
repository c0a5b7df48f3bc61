#include "frontend/hooks.h"

#include <torch/csrc/autograd/forward_grad.h>

#include <algorithm>

namespace sinter::frontend {

Hooks Hooks::of(const c10::TensorImpl& tensor) {
  Hooks hooks;
  const auto* autograd = static_cast<const torch::autograd::AutogradMeta*>(tensor.autograd_meta());
  if (autograd == nullptr || autograd->cpp_hooks_list_ == nullptr) return hooks;
  const auto& list = *autograd->cpp_hooks_list_;
  hooks.list_ = autograd->cpp_hooks_list_;
  hooks.length_ = list.size();
  hooks.count_ = static_cast<size_t>(std::ranges::count_if(list, [](const auto& hook) { return hook != nullptr; }));
  return hooks;
}

bool Hooks::operator==(const Hooks& other) const {
  if (count_ == 0 && other.count_ == 0) return true;
  const bool one_list = !list_.owner_before(other.list_) && !other.list_.owner_before(list_);
  return one_list && length_ == other.length_ && count_ == other.count_;
}

bool has_tangent(const c10::TensorImpl& tensor) {
  const auto* autograd = static_cast<const torch::autograd::AutogradMeta*>(tensor.autograd_meta());
  return autograd != nullptr && autograd->fw_grad_ != nullptr && !autograd->fw_grad_->empty();
}

}  // namespace sinter::frontend
