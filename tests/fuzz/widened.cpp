#include "widened.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

namespace sinter::test::fuzz {

using at::Tensor;

at::ScalarType wider(at::ScalarType dtype) {
  if (dtype == at::kHalf || dtype == at::kBFloat16) return at::kFloat;
  return dtype == at::kFloat ? at::kDouble : dtype;
}

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
  return memory.wide.as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
}

void Widened::put_back() const {
  const c10::NoGradGuard no_grad;
  for (const auto& [storage, memory] : memories_) memory.narrow.copy_(memory.wide);
}

}  // namespace sinter::test::fuzz
