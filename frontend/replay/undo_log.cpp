#include "frontend/replay/undo_log.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>

#include "frontend/torch/libtorch_version.h"
#include "frontend/trace/elements.h"

namespace sinter::frontend {
namespace {

/// Copies are not the program's: neither recorded nor differentiated.
struct Unseen {
  c10::impl::ExcludeDispatchKeyGuard no_hook{kHookKeys};
  at::AutoDispatchBelowADInplaceOrView no_history;
};

at::Tensor bytes_of(const at::Tensor& tensor) {
  Elements bytes;
  bytes.dtype = at::kByte;
  bytes.sizes = {static_cast<int64_t>(tensor.storage().nbytes())};
  bytes.strides = {1};
  return tensor_over(tensor.storage(), bytes, tensor.device());
}

}  // namespace

void UndoLog::keep(const at::Tensor& tensor) {
  if (!tensor.has_storage() || tensor.storage().nbytes() == 0) return;
  const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  const auto known = [&](const Kept& kept) { return kept.memory.storage().unsafeGetStorageImpl() == storage; };
  if (std::ranges::any_of(kept_, known)) return;
  const Unseen unseen;
  at::Tensor memory = bytes_of(tensor);
  at::Tensor copy = at::empty_like(memory).copy_(memory);
  kept_.push_back({std::move(memory), std::move(copy)});
}

void UndoLog::restore() {
  const Unseen unseen;
  for (const Kept& kept : kept_) kept.memory.copy_(kept.copy);
  kept_.clear();
}

}  // namespace sinter::frontend
