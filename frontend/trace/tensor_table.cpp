#include "frontend/trace/tensor_table.h"

#include <c10/util/complex.h>

#include <algorithm>

#include "compiler/support/planted.h"
#include "frontend/torch/tensor_memory.h"
#include "frontend/trace/memory_tag.h"
#include "frontend/trace/overlap.h"

namespace sinter::frontend {
namespace {

/// The address of the first element, also while nobody may look there.
uintptr_t address_of_closed(const c10::TensorImpl& tensor) {
  const auto* base =
      static_cast<const char*>(tensor.unsafe_storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get());
  const int64_t distance = tensor.storage_offset() * static_cast<int64_t>(tensor.itemsize());
  return base == nullptr ? 0 : reinterpret_cast<uintptr_t>(base + distance);
}

/// Bytes that a tensor lies behind where its elements say.
int64_t distance(const Elements& elements, const at::Tensor& tensor) {
  return (tensor.storage_offset() - elements.offset) * static_cast<int64_t>(tensor.itemsize());
}

/// Bytes that a storage's first tensor begins in it, as far as they are whole elements of every dtype: values count
/// from there, so that equal parts of different storages, or of one, are recorded alike.
int64_t whole_shift_of(const at::Tensor& tensor) {
  constexpr int64_t largest_element = sizeof(c10::complex<double>);
  const int64_t bytes = tensor.storage_offset() * static_cast<int64_t>(tensor.itemsize());
  return bytes - bytes % largest_element;
}

}  // namespace

bool lies_inside(const Elements& inner, const Elements& outer) {
  if (inner == outer) return true;
  if (inner.dtype != outer.dtype || !outer.reading.plain()) return false;
  if (std::ranges::find(inner.sizes, 0) != inner.sizes.end()) return true;
  if (inner.begin_byte() < outer.begin_byte() || inner.end_byte() > outer.end_byte()) return false;
  const c10::Device cpu(c10::kCPU);
  return ir::lies_in_elements_of(outer.type(cpu), inner.type(cpu), inner.offset - outer.offset);
}

std::optional<uint32_t> TensorTable::number_of(const c10::StorageImpl* storage) const {
  if (const auto missing = number_of_missing(*storage)) {
    const bool ours =
        *missing < room_.memories.size() && room_.memories[*missing].storage._unsafe_get_target() == storage;
    return ours ? missing : std::nullopt;
  }
  const auto found = room_.by_storage.find(storage);
  return found == room_.by_storage.end() ? std::nullopt : std::optional(found->second);
}

bool TensorTable::lasts(const at::Tensor& tensor) const {
  return !tensor.has_storage() || lent_.lasts(*storage_of(*tensor.unsafeGetTensorImpl()));
}

const TensorTable::Memory* TensorTable::first_over(const at::Tensor& tensor) const {
  const auto number = number_of(storage_of(*tensor.unsafeGetTensorImpl()));
  return number ? &room_.memories[*number] : nullptr;
}

const TensorTable::Memory* TensorTable::next(const Memory& memory) const {
  return memory.again.valid() ? &room_.memories[memory.again.index] : nullptr;
}

const TensorTable::Memory* TensorTable::memory_of(const at::Tensor& tensor) const {
  const Memory* first = first_over(tensor);
  if (first == nullptr || !first->again.valid()) return first;
  for (const Memory* memory = first; memory != nullptr; memory = next(*memory)) {
    if (lies_in_first(elements_in(*memory, tensor), id_of(*memory))) return memory;
  }
  return first;
}

bool TensorTable::can_be_apart(const at::Tensor& tensor, bool is_written) const {
  const Memory* memory = first_over(tensor);
  if (memory == nullptr) return true;
  if (known(id_of(*memory)).fresh) return false;  // the only one over its storage
  if (!wrote_ && !is_written) return true;
  const Elements seen = Elements::of(tensor);
  for (; memory != nullptr; memory = next(*memory)) {
    if ((is_written || memory->written) && overlap(held_by(*memory), seen)) return false;
  }
  return true;
}

bool TensorTable::reaches_into(TraceMemoryId id, const at::Tensor& tensor) const {
  const Memory& memory = room_.memories[id.index];
  if (memory.storage._unsafe_get_target() != storage_of(*tensor.unsafeGetTensorImpl())) return false;
  if (find(tensor).valid() || lies_in_first(elements_of(tensor), id_of(*memory_of(tensor)))) return false;
  return overlap(held_by(memory), Elements::of(tensor));
}

const TensorTable::Memory& TensorTable::first_beside(const Memory& memory) const {
  const auto first = room_.by_storage.find(memory.storage._unsafe_get_target());
  return first == room_.by_storage.end() ? memory : room_.memories[first->second];
}

bool TensorTable::is_alone(TraceMemoryId id) const { return !first_beside(room_.memories[id.index]).again.valid(); }

bool TensorTable::can_write(TraceMemoryId id) const {
  const Memory& written = room_.memories[id.index];
  const Memory* memory = &first_beside(written);
  if (!memory->again.valid() || planted(Bug::shared_memory_written)) return true;
  const Elements held = held_by(written);
  for (; memory != nullptr; memory = next(*memory)) {
    if (memory != &written && overlap(held, held_by(*memory))) return false;
  }
  return true;
}

TraceValueId TensorTable::find_in(const Memory& memory, const at::Tensor& tensor) const {
  for (const TraceValueId id : memory.values) {
    if (value(id).elements.are_those_of(tensor, memory.shift)) return id;
  }
  return {};
}

TraceValueId TensorTable::find(const at::Tensor& tensor) const {
  for (const Memory* memory = first_over(tensor); memory != nullptr; memory = next(*memory)) {
    if (const TraceValueId found = find_in(*memory, tensor); found.valid()) return found;
  }
  return {};
}

TraceValueId TensorTable::find_alone(const at::Tensor& tensor) const {
  const Memory* memory = first_over(tensor);
  return memory == nullptr || memory->again.valid() ? TraceValueId() : find_in(*memory, tensor);
}

at::Tensor TensorTable::given(TraceValueId id) const { return over(room_.memories[value(id).memory.index].held, id); }

at::Tensor TensorTable::over(c10::Storage storage, TraceValueId id) const {
  const TraceValue& known = value(id);
  const TraceMemoryId memory = known.memory;
  return tensor_over(std::move(storage), known.elements, this->known(memory).device,
                     room_.memories[memory.index].shift);
}

Elements TensorTable::elements_of(const at::Tensor& tensor) const {
  const Memory* memory = memory_of(tensor);
  return memory == nullptr ? Elements::of(tensor) : elements_in(*memory, tensor);
}

Elements TensorTable::elements_in(const Memory& memory, const at::Tensor& tensor) const {
  Elements elements = Elements::of(tensor);
  elements.offset -= memory.shift / static_cast<int64_t>(tensor.itemsize());
  return elements;
}

Elements TensorTable::held_by(const Memory& memory) const {
  Elements elements = value(known(id_of(memory)).root).elements;
  elements.offset = elements.offset_behind(memory.shift);
  return elements;
}

bool TensorTable::can_be_value(const at::Tensor& tensor) const {
  const Memory* memory = memory_of(tensor);
  return memory == nullptr || memory->shift % static_cast<int64_t>(tensor.itemsize()) == 0;
}

bool TensorTable::can_be_value(const TraceValue& made) const {
  if (made.memory.index >= room_.memories.size()) return true;
  const int64_t shift = room_.memories[made.memory.index].shift;
  return shift % static_cast<int64_t>(c10::elementSize(made.elements.dtype)) == 0;
}

int64_t TensorTable::shift_of(const at::Tensor& tensor) const {
  const Memory* memory = memory_of(tensor);
  return memory == nullptr ? 0 : memory->shift / static_cast<int64_t>(tensor.itemsize());
}

bool TensorTable::lies_in_first(const Elements& elements, TraceMemoryId memory) const {
  return lies_inside(elements, value(known(memory).root).elements);
}

bool TensorTable::is_deferred(const Memory& memory) const { return known(id_of(memory)).fresh || memory.written; }

bool TensorTable::is_deferred(const at::Tensor& tensor) const {
  for (const Memory* memory = first_over(tensor); memory != nullptr; memory = next(*memory)) {
    if (is_deferred(*memory)) return true;
  }
  return false;
}

bool TensorTable::lies_in_deferred(const at::Tensor& tensor) const {
  const Memory* memory = memory_of(tensor);
  return memory != nullptr && is_deferred(*memory);
}

bool TensorTable::is_made(const at::Tensor& tensor) const {
  const Memory* memory = tensor.defined() && tensor.has_storage() ? memory_of(tensor) : nullptr;
  return memory != nullptr && known(id_of(*memory)).fresh;
}

bool TensorTable::is(TraceValueId id, const at::Tensor& tensor) const {
  const TraceValue& known = value(id);
  return room_.memories[known.memory.index].storage._unsafe_get_target() == storage_of(*tensor.unsafeGetTensorImpl()) &&
         known.elements.are_those_of(tensor, room_.memories[known.memory.index].shift);
}

TraceMemoryId TensorTable::add_memory(const at::Tensor& tensor, bool fresh) {
  const TraceMemoryId id{static_cast<uint32_t>(room_.memories.size())};
  add_memory(own_memories_.emplace_back(TraceMemory{.device = tensor.device(),
                                                    .fresh = fresh,
                                                    .bytes = fresh ? tensor.storage().nbytes() : 0,
                                                    .root = {static_cast<uint32_t>(room_.values.size())}}),
             tensor.storage());
  if (!fresh) room_.memories.back().shift = whole_shift_of(tensor);
  return id;
}

TraceValueId TensorTable::add_value(const at::Tensor& tensor, TraceMemoryId memory, TraceValue::From from) {
  const bool known_address = !known(memory).fresh;
  const auto& impl = *tensor.unsafeGetTensorImpl();
  add(own_values_.emplace_back(TraceValue{
      .from = from,
      .memory = memory,
      .elements = elements_in(room_.memories[memory.index], tensor),
      .alignment = known_address ? alignment_up_to(ir::full_alignment, address_of_closed(impl)) : ir::full_alignment}));
  return {static_cast<uint32_t>(room_.values.size() - 1)};
}

void TensorTable::add_memory(const TraceMemory& memory, const c10::Storage& storage) {
  const TraceMemoryId id{static_cast<uint32_t>(room_.memories.size())};
  const auto [first, is_first] = room_.by_storage.emplace(storage.unsafeGetStorageImpl(), id.index);
  add(memory, storage);
  if (!memory.fresh) room_.memories.back().held = storage;
  if (!is_first) room_.memories.back().again = std::exchange(room_.memories[first->second].again, id);
}

void TensorTable::add(const TraceValue& value) {
  room_.memories[value.memory.index].values.push_back({static_cast<uint32_t>(room_.values.size())});
  room_.values.push_back(&value);
}

void TensorTable::add(const TraceMemory& memory, const c10::Storage& storage) {
  room_.memories.push_back({.storage = storage.getWeakStorageImpl()});
  room_.known.push_back(&memory);
}

TraceValueId TensorTable::take(const at::Tensor& tensor) {
  if (const TraceValueId known = find(tensor); known.valid()) return known;
  const Memory* memory = memory_of(tensor);
  const bool inside = memory != nullptr && lies_in_first(elements_in(*memory, tensor), id_of(*memory));
  return inside ? add_value(tensor, id_of(*memory), TraceValue::From::look) : take_apart(tensor);
}

TraceValueId TensorTable::take_apart(const at::Tensor& tensor) {
  return add_value(tensor, add_memory(tensor, false), TraceValue::From::input);
}

bool TensorTable::take_as(const TraceValue& expected, const TraceMemory* memory, const at::Tensor& tensor) {
  const auto& impl = *tensor.unsafeGetTensorImpl();
  const int64_t shift =
      memory == nullptr ? room_.memories[expected.memory.index].shift : distance(expected.elements, tensor);
  if (!expected.elements.are_those_of(tensor, shift)) return false;
  const c10::StorageImpl* storage = storage_of(impl);
  if (memory == nullptr) {
    if (room_.memories[expected.memory.index].storage._unsafe_get_target() != storage) return false;
  } else if (memory->device != tensor.device() || !can_be_apart(tensor) || !lent_.lasts(*storage)) {
    return false;
  }
  const bool at_fixed_address = memory != nullptr || !known(expected.memory).fresh;
  const bool aligned = address_of_closed(impl) % static_cast<uintptr_t>(expected.alignment) == 0;
  if (at_fixed_address && !aligned && !planted(Bug::alignment_not_guarded)) return false;
  if (memory != nullptr) {
    add_memory(*memory, tensor.storage());
    room_.memories.back().shift = shift;
  }
  add(expected);
  return true;
}

void TensorTable::note_arrivals() {
  for (uint32_t i = 0; i < room_.memories.size(); ++i)
    room_.by_storage.emplace(room_.memories[i].storage._unsafe_get_target(), i);
}

TraceValueId TensorTable::give(const at::Tensor& tensor, TraceMemoryId id) {
  const Memory* memory = id.valid() ? &room_.memories[id.index] : first_over(tensor);
  if (memory == nullptr) return add_value(tensor, add_memory(tensor, true), TraceValue::From::result);
  if (const TraceValueId known = find_in(*memory, tensor); known.valid()) return known;
  return add_value(tensor, id_of(*memory), TraceValue::From::result);
}

void TensorTable::begin_call() {
  values_before_ = room_.values.size();
  memories_before_ = room_.memories.size();
}

TensorTable::Added TensorTable::added() const {
  return {std::span(room_.values).subspan(values_before_), std::span(room_.known).subspan(memories_before_)};
}

void TensorTable::forget_added() {
  for (size_t i = room_.values.size(); i-- > values_before_;)
    room_.memories[room_.values[i]->memory.index].values.pop_back();
  room_.values.resize(values_before_);
  for (size_t i = room_.memories.size(); i-- > memories_before_;) forget_storage(room_.memories[i]);
  room_.memories.erase(room_.memories.begin() + static_cast<std::ptrdiff_t>(memories_before_), room_.memories.end());
  room_.known.resize(memories_before_);
}

/// Of the memory that came last over its storage.
void TensorTable::forget_storage(const Memory& memory) {
  const auto first = room_.by_storage.find(memory.storage._unsafe_get_target());
  if (first == room_.by_storage.end()) return;
  if (first->second == id_of(memory).index) {
    room_.by_storage.erase(first);
  } else {
    room_.memories[first->second].again = memory.again;
  }
}

void TensorTable::clear() {
  room_.values.clear();
  room_.memories.clear();
  room_.known.clear();
  own_values_.clear();
  own_memories_.clear();
  room_.by_storage.clear();
  values_before_ = memories_before_ = 0;
  wrote_ = false;
}

}  // namespace sinter::frontend
