#include "frontend/trusted/tensor_guard.h"

#include "frontend/torch/tangent.h"

namespace sinter::frontend {

TensorGuard::TensorGuard(const at::Tensor& tensor)
    : keys_(tensor.key_set().raw_repr()),
      device_(tensor.device()),
      elements_(Elements::of(tensor)),
      requires_grad_(tensor.requires_grad()) {}

bool TensorGuard::holds(const at::Tensor& tensor) const {
  if (tensor.key_set().raw_repr() != keys_ || tensor.device() != device_) return false;
  const bool requires_alike = tensor.requires_grad() == requires_grad_;
  return elements_.are_those_of(tensor) && requires_alike && !has_tangent(*tensor.unsafeGetTensorImpl());
}

bool is_guardable(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (impl.layout() != c10::kStrided || !impl.has_storage() || tensor.is_meta()) return false;
  if (tensor.is_quantized() || tensor.is_nested() || tensor._is_zerotensor()) return false;
  if (impl.has_symbolic_sizes_strides() || impl.is_python_dispatch()) return false;
  return !has_tangent(impl) && (tensor.device().is_cpu() || tensor.device().is_cuda());
}

}  // namespace sinter::frontend
