#include "frontend/holders.h"

#include <ATen/ops/empty.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <unordered_set>

#include "frontend/libtorch_version.h"
#include "frontend/tensor_memory.h"

namespace sinter::frontend {
namespace {

using Holders = std::unordered_set<const c10::TensorImpl*>;

bool lies_in(const at::Tensor& tensor, const c10::StorageImpl& storage) {
  return storage_of(*tensor.unsafeGetTensorImpl()) == &storage;
}

/// A tensor and, where it is a view, the tensor it is a view of.
void add_with_base(Holders& holders, const at::Tensor& tensor) {
  holders.insert(tensor.unsafeGetTensorImpl());
  if (tensor.is_view()) holders.insert(tensor._base().unsafeGetTensorImpl());
}

/// Which of these outputs, and of the tensors they are views of, hold the storage.
Holders holders_of(const c10::StorageImpl& storage, std::span<const at::Tensor> outputs) {
  Holders holders;
  for (const at::Tensor& output : outputs) {
    if (lies_in(output, storage)) add_with_base(holders, output);
  }
  return holders;
}

/// An uninitialised tensor that lies in a storage of its own as `tensor` lies in its.
at::Tensor twin_of(const at::Tensor& tensor) {
  const auto items = static_cast<int64_t>(tensor.storage().nbytes() / tensor.itemsize());
  at::Tensor twin = at::empty({items}, tensor.options());
  twin.set_(twin.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides());
  return twin;
}

/// How a view that as_strided cannot make (a conjugate, the real part) is made of its base; null for others. LibTorch
/// keeps the way back too, and with it the views between.
const torch::autograd::ViewInfo* way_from_base(const at::Tensor& view) {
  if (!view.is_view()) return nullptr;
  const auto* meta = torch::autograd::impl::get_view_autograd_meta(view);
  const bool known = meta->has_bw_view() && meta->get_backward_view().has_view_fn();
  return known ? &meta->get_backward_view() : nullptr;
}

/// References to its storage that a view holds besides its own and its base's: the same views are made of a twin of the
/// base, and what they hold is counted there.
size_t views_between(const at::Tensor& view) {
  const auto* way = way_from_base(view);
  if (way == nullptr) return 0;
  const c10::impl::ExcludeDispatchKeyGuard no_capture(kHookKeys);
  const at::Tensor twin = twin_of(way->base_);
  const at::Tensor same_view = way->view_fn()(twin);
  return twin.storage().use_count() - 2;
}

/// The most of any output that lies in the storage: two may hold the same views.
size_t views_between(const c10::StorageImpl& storage, std::span<const at::Tensor> outputs) {
  size_t most = 0;
  for (const at::Tensor& output : outputs) {
    if (lies_in(output, storage)) most = std::max(most, views_between(output));
  }
  return most;
}

}  // namespace

bool only_outputs_hold(const c10::StorageImpl& storage, size_t strong_references, std::span<const at::Tensor> outputs) {
  const size_t known = holders_of(storage, outputs).size();
  return strong_references <= known || strong_references <= known + views_between(storage, outputs);
}

bool is_held_by_more(const at::Tensor& tensor, size_t holders, size_t storage_holders,
                     std::span<const at::Tensor> outputs) {
  const c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  const Holders made = holders_of(storage, outputs);
  // An output that is the tensor, or that knows it on its way from its base, holds it any number of times.
  const bool counted = !made.contains(tensor.unsafeGetTensorImpl()) &&
                       std::ranges::none_of(outputs, [&storage](const at::Tensor& output) {
                         return lies_in(output, storage) && way_from_base(output) != nullptr;
                       });
  if (counted && tensor.use_count() > holders + 1) return true;
  Holders known;
  add_with_base(known, tensor);
  const auto is_new = [&known](const c10::TensorImpl* holder) { return !known.contains(holder); };
  const size_t expected = storage_holders + static_cast<size_t>(std::ranges::count_if(made, is_new));
  const size_t found = tensor.storage().use_count();
  return found > expected && found > expected + views_between(storage, outputs);
}

}  // namespace sinter::frontend
