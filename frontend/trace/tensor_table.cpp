#include "frontend/trace/tensor_table.h"

#include <algorithm>

#include "frontend/tensor_memory.h"

namespace sinter::frontend {
namespace {

/// The address of the first element, also while nobody may look there.
uintptr_t address_of_closed(const c10::TensorImpl& tensor) {
  const auto* base =
      static_cast<const char*>(tensor.unsafe_storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get());
  const int64_t distance = tensor.storage_offset() * static_cast<int64_t>(tensor.itemsize());
  return base == nullptr ? 0 : reinterpret_cast<uintptr_t>(base + distance);
}

}  // namespace

bool lies_inside(const Elements& inner, const Elements& outer) {
  if (inner == outer) return true;
  if (inner.dtype != outer.dtype || !outer.reading.plain()) return false;
  if (inner.begin_byte() < outer.begin_byte() || inner.end_byte() > outer.end_byte()) return false;
  const c10::Device cpu(c10::kCPU);
  return ir::lies_in_elements_of(outer.type(cpu), inner.type(cpu), inner.offset - outer.offset);
}

const TensorTable::Memory* TensorTable::memory_of(const at::Tensor& tensor) const {
  const auto found = by_storage_.find(storage_of(*tensor.unsafeGetTensorImpl()));
  return found == by_storage_.end() ? nullptr : &memories_[found->second];
}

TraceValueId TensorTable::find(const at::Tensor& tensor) const {
  const Memory* memory = memory_of(tensor);
  if (memory == nullptr) return {};
  for (const TraceValueId value : memory->values) {
    if (values_[value.index].elements.are_those_of(tensor)) return value;
  }
  return {};
}

TraceMemoryId TensorTable::add_memory(const at::Tensor& tensor, bool fresh) {
  const TraceMemoryId id{static_cast<uint32_t>(memories_.size())};
  Memory memory{.storage = tensor.storage().getWeakStorageImpl()};
  if (!fresh) memory.held = tensor.storage();
  memories_.push_back(std::move(memory));
  known_.push_back({.device = tensor.device(),
                    .fresh = fresh,
                    .bytes = fresh ? tensor.storage().nbytes() : 0,
                    .root = {static_cast<uint32_t>(values_.size())}});
  by_storage_[storage_of(*tensor.unsafeGetTensorImpl())] = id.index;
  return id;
}

TraceValueId TensorTable::add_value(const at::Tensor& tensor, TraceMemoryId memory, TraceValue::From from) {
  const TraceValueId id{static_cast<uint32_t>(values_.size())};
  const bool known_address = !known_[memory.index].fresh;
  values_.push_back({.from = from,
                     .memory = memory,
                     .elements = Elements::of(tensor),
                     .alignment = known_address ? alignment_up_to(ir::full_alignment,
                                                                  address_of_closed(*tensor.unsafeGetTensorImpl()))
                                                : ir::full_alignment});
  memories_[memory.index].values.push_back(id);
  return id;
}

TraceValueId TensorTable::take(const at::Tensor& tensor) {
  const auto found = by_storage_.find(storage_of(*tensor.unsafeGetTensorImpl()));
  if (found == by_storage_.end()) return add_value(tensor, add_memory(tensor, false), TraceValue::From::input);
  if (const TraceValueId known = find(tensor); known.valid()) return known;
  const TraceMemoryId id{found->second};
  const bool inside = lies_inside(Elements::of(tensor), value(known_[id.index].root).elements);
  if (inside) return add_value(tensor, id, TraceValue::From::look);
  if (!memories_[id.index].several_inputs) split_.push_back(id);
  memories_[id.index].several_inputs = true;
  return add_value(tensor, id, TraceValue::From::input);
}

TraceValueId TensorTable::give(const at::Tensor& tensor) {
  if (const TraceValueId known = find(tensor); known.valid()) return known;
  const auto found = by_storage_.find(storage_of(*tensor.unsafeGetTensorImpl()));
  const TraceMemoryId memory = found == by_storage_.end() ? add_memory(tensor, true) : TraceMemoryId{found->second};
  return add_value(tensor, memory, TraceValue::From::result);
}

void TensorTable::add(const TraceValue& value, const TraceMemory& memory, const c10::Storage& storage) {
  const TraceValueId id{static_cast<uint32_t>(values_.size())};
  if (value.memory.index == memories_.size()) {
    memories_.push_back({.storage = storage.getWeakStorageImpl()});
    known_.push_back(memory);
    by_storage_[storage.unsafeGetStorageImpl()] = value.memory.index;
  }
  values_.push_back(value);
  memories_[value.memory.index].values.push_back(id);
}

void TensorTable::begin_call() {
  values_before_ = values_.size();
  memories_before_ = memories_.size();
  split_.clear();
}

TensorTable::Added TensorTable::added() const {
  return {std::span(values_).subspan(values_before_), std::span(known_).subspan(memories_before_)};
}

void TensorTable::forget_added() {
  for (const TraceMemoryId memory : split_) memories_[memory.index].several_inputs = false;
  split_.clear();
  for (size_t i = values_before_; i < values_.size(); ++i) {
    auto& values = memories_[values_[i].memory.index].values;
    values.erase(std::remove(values.begin(), values.end(), TraceValueId{static_cast<uint32_t>(i)}), values.end());
  }
  values_.resize(values_before_);
  for (size_t i = memories_before_; i < memories_.size(); ++i) {
    by_storage_.erase(memories_[i].storage._unsafe_get_target());
  }
  memories_.erase(memories_.begin() + static_cast<std::ptrdiff_t>(memories_before_), memories_.end());
  known_.resize(memories_before_);
}

void TensorTable::clear() {
  values_.clear();
  memories_.clear();
  known_.clear();
  by_storage_.clear();
  split_.clear();
  values_before_ = memories_before_ = 0;
}

}  // namespace sinter::frontend
