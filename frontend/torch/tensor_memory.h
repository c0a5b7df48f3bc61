#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sinter::frontend {

using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl>;

/// A weak reference to a defined tensor.
[[nodiscard]] inline WeakTensor weaken(at::Tensor tensor) {
  return WeakTensor(c10::intrusive_ptr<c10::TensorImpl>::reclaim(tensor.unsafeReleaseTensorImpl()));
}

/// The tensor, or an undefined one when it is gone.
[[nodiscard]] inline at::Tensor lock(const WeakTensor& weak) {
  auto strong = weak.lock();
  if (strong.get() == nullptr) return {};
  return at::Tensor(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim(strong.release()));
}

[[nodiscard]] inline const c10::StorageImpl* storage_of(const c10::TensorImpl& tensor) {
  return tensor.unsafe_storage().unsafeGetStorageImpl();
}

/// One past the last element that these sizes and strides reach from `offset` on; `offset` for no elements.
[[nodiscard]] inline int64_t end_of_elements(int64_t offset, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  int64_t last = offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return offset;
    last += (sizes[i] - 1) * strides[i];
  }
  return last + 1;
}

/// Largest power of two up to `cap`, which is one, that divides an address.
[[nodiscard]] inline int64_t alignment_up_to(uintptr_t cap, uintptr_t address) {
  const uintptr_t capped = address | cap;
  return static_cast<int64_t>(capped & (~capped + 1));
}

/// Address of the first element; 0 for a tensor without memory. Leaves copy-on-write storages as they are.
[[nodiscard]] inline uintptr_t address_of(const c10::TensorImpl& tensor) {
  const auto* base = static_cast<const char*>(tensor.unsafe_storage().data());
  if (base == nullptr) return 0;
  return reinterpret_cast<uintptr_t>(base + tensor.storage_offset() * static_cast<int64_t>(tensor.itemsize()));
}

}  // namespace sinter::frontend
