#include "frontend/ledger.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "frontend/tensor_memory.h"

namespace sinter::frontend {
namespace {

/// What depends on more leaves than this is taken as varying, so that no list of them grows along a program.
constexpr size_t kMostLeaves = 64;

}  // namespace

void Origin::add(const Origin& other) {
  varies = varies || other.varies;
  for (const ir::ValueId leaf : other.leaves) {
    if (std::find(leaves.begin(), leaves.end(), leaf) == leaves.end()) leaves.push_back(leaf);
  }
  varies = varies || leaves.size() > kMostLeaves;
  if (varies) leaves.clear();
}

Layout Layout::of(const at::Tensor& tensor) {
  return {tensor.storage().unsafeGetStorageImpl(),
          tensor.scalar_type(),
          tensor.storage_offset(),
          tensor.sizes().vec(),
          tensor.strides().vec(),
          tensor.is_conj(),
          tensor.is_neg()};
}

int64_t Layout::begin_byte() const { return offset * static_cast<int64_t>(c10::elementSize(dtype)); }

int64_t Layout::end_byte() const {
  return end_of_elements(offset, sizes, strides) * static_cast<int64_t>(c10::elementSize(dtype));
}

std::optional<ir::ValueId> TensorLedger::find(const at::Tensor& tensor) const {
  const auto known = tensors_.find(tensor.unsafeGetTensorImpl());
  if (known == tensors_.end() || known->second.layout != Layout::of(tensor)) return std::nullopt;
  return known->second.value;
}

Memory* TensorLedger::memory(const at::Tensor& tensor) {
  const auto found = memories_.find(tensor.storage().unsafeGetStorageImpl());
  return found == memories_.end() ? nullptr : &found->second;
}

Memory& TensorLedger::memory_or_add(const at::Tensor& tensor) {
  const auto [entry, added] = memories_.try_emplace(
      tensor.storage().unsafeGetStorageImpl(),
      Memory{.storage = tensor.storage().getWeakStorageImpl(), .regions = {}, .views = {}, .origin = {}});
  return entry->second;
}

bool TensorLedger::is_written(const c10::StorageImpl* storage) const {
  const auto memory = memories_.find(storage);
  return memory != memories_.end() && memory->second.written;
}

bool TensorLedger::has_lost_writes() const {
  return std::any_of(memories_.begin(), memories_.end(),
                     [](const auto& entry) { return entry.second.written && entry.second.opaque; });
}

Placement TensorLedger::place(const at::Tensor& tensor, std::span<const ir::ValueId> preferred) const {
  const Layout layout = Layout::of(tensor);
  const auto memory = memories_.find(layout.storage);
  if (memory == memories_.end()) return {};
  const int64_t begin = layout.begin_byte();
  const int64_t end = layout.end_byte();
  Placement placement;
  for (const Region& region : memory->second.regions) {
    const int64_t first = region.layout.begin_byte();
    const int64_t last = region.layout.end_byte();
    if (first <= begin && end <= last && region.layout.dtype == layout.dtype) {
      const Placement here{Placement::Kind::inside, region.value, layout.offset - region.layout.offset, false};
      if (std::find(preferred.begin(), preferred.end(), region.value) != preferred.end()) return here;
      if (region.look) continue;
      placement.ambiguous = placement.kind == Placement::Kind::inside;
      if (!placement.ambiguous) placement = here;
    } else if (placement.kind == Placement::Kind::fresh && begin < last && first < end) {
      placement = {Placement::Kind::overlapping, region.value, 0, false};
    }
  }
  return placement;
}

Placement TensorLedger::place_across(const at::Tensor& tensor) const {
  const Layout layout = Layout::of(tensor);
  const auto memory = memories_.find(layout.storage);
  if (memory == memories_.end()) return {};
  const Region* lowest = nullptr;
  for (const Region& region : memory->second.regions) {
    const bool overlaps =
        region.layout.begin_byte() < layout.end_byte() && layout.begin_byte() < region.layout.end_byte();
    if (region.look || !overlaps || region.layout.dtype != layout.dtype) continue;
    if (lowest == nullptr || region.layout.offset < lowest->layout.offset) lowest = &region;
  }
  if (lowest == nullptr) return {};
  return {Placement::Kind::inside, lowest->value, layout.offset - lowest->layout.offset, false};
}

std::optional<ir::ValueId> TensorLedger::find_view(const at::Tensor& tensor) const {
  const Layout layout = Layout::of(tensor);
  const auto memory = memories_.find(layout.storage);
  if (memory == memories_.end()) return std::nullopt;
  const auto& views = memory->second.views;
  const auto view =
      std::find_if(views.rbegin(), views.rend(), [&](const Region& candidate) { return candidate.layout == layout; });
  return view == views.rend() ? std::nullopt : std::optional(view->value);
}

void TensorLedger::add_view(const at::Tensor& tensor, ir::ValueId value) {
  memory_or_add(tensor).views.push_back({value, Layout::of(tensor)});
}

void TensorLedger::bind(const at::Tensor& tensor, ir::ValueId value) {
  tensors_.insert_or_assign(
      tensor.unsafeGetTensorImpl(),
      Known{c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr()), value, Layout::of(tensor)});
}

void TensorLedger::add_region(const at::Tensor& tensor, ir::ValueId value, bool look) {
  memory_or_add(tensor).regions.push_back({value, Layout::of(tensor), look});
}

void TensorLedger::forget_tensors(const c10::StorageImpl* storage) {
  if (const auto memory = memories_.find(storage); memory != memories_.end()) memory->second.views.clear();
  std::erase_if(tensors_, [&](const auto& entry) { return entry.second.layout.storage == storage; });
}

uint64_t hash_of(const c10::StorageImpl& storage) {
  const auto* bytes = static_cast<const char*>(storage.data());
  return std::hash<std::string_view>{}({bytes ? bytes : "", bytes ? storage.nbytes() : 0});
}

at::Tensor copy_of(const c10::StorageImpl& storage, const Layout& layout) {
  at::Tensor copy = at::detail::empty_strided_cpu(layout.sizes, layout.strides, layout.dtype);
  const int64_t bytes = layout.end_byte() - layout.begin_byte();
  if (bytes > 0) {
    std::memcpy(copy.mutable_data_ptr(), static_cast<const char*>(storage.data()) + layout.begin_byte(),
                static_cast<size_t>(bytes));
  }
  return copy;
}

}  // namespace sinter::frontend
