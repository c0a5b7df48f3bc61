#include "widened.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

namespace sinter::test::fuzz {

using at::Tensor;

at::ScalarType wider(at::ScalarType dtype) {
  if (dtype == at::kHalf || dtype == at::kBFloat16) return at::kFloat;
  return dtype == at::kFloat ? at::kDouble : dtype;
}

double step_near_zero(at::ScalarType dtype) { return dtype == at::kHalf ? 6e-8 : 0; }

namespace {

/// All of `memory`, laid out as `like` is. Not a view for autograd: one made without gradients could not be written
/// with them.
Tensor laid_out(const Tensor& memory, const Tensor& like) {
  return at::empty({0}, memory.options()).set_(memory.storage(), like.storage_offset(), like.sizes(), like.strides());
}

}  // namespace

Tensor Widened::of(const Tensor& tensor) {
  const auto dtype = wider(tensor.scalar_type());
  if (dtype == tensor.scalar_type()) return tensor;
  const c10::NoGradGuard no_grad;
  auto& memory = memories_[tensor.storage().unsafeGetStorageImpl()];
  if (!memory.narrow.defined()) {
    const auto count = static_cast<int64_t>(tensor.storage().nbytes() / tensor.element_size());
    memory.narrow = at::empty({0}, tensor.options()).set_(tensor.storage(), 0, {count}, {1});
    memory.wide = memory.narrow.to(dtype);
  }
  return laid_out(memory.wide, tensor);
}

Tensor Widened::back(const Tensor& wide, at::ScalarType dtype) {
  if (wide.scalar_type() == dtype || wide.scalar_type() != wider(dtype)) return wide;
  const c10::NoGradGuard no_grad;
  for (const auto& [storage, memory] : memories_) {
    if (memory.wide.storage().is_alias_of(wide.storage())) return laid_out(memory.narrow, wide);
  }
  const auto count = static_cast<int64_t>(wide.storage().nbytes() / wide.element_size());
  Memory made;
  made.wide = at::empty({0}, wide.options()).set_(wide.storage(), 0, {count}, {1});
  made.narrow = made.wide.to(dtype);
  memories_[made.narrow.storage().unsafeGetStorageImpl()] = made;
  return laid_out(made.narrow, wide);
}

void Widened::put_back() const {
  const c10::NoGradGuard no_grad;
  for (const auto& [storage, memory] : memories_) memory.narrow.copy_(memory.wide);
}

}  // namespace sinter::test::fuzz
