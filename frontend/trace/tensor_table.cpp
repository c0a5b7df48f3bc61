#include "frontend/trace/tensor_table.h"

#include <c10/util/complex.h>

#include <algorithm>

#include "compiler/support/planted.h"
#include "frontend/torch/tensor_memory.h"
#include "frontend/trace/memory_tag.h"

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

const TensorTable::Memory* TensorTable::memory_of(const at::Tensor& tensor) const {
  const auto number = number_of(storage_of(*tensor.unsafeGetTensorImpl()));
  return number ? &room_.memories[*number] : nullptr;
}

TraceValueId TensorTable::find(const at::Tensor& tensor) const {
  const Memory* memory = memory_of(tensor);
  if (memory == nullptr) return {};
  for (const TraceValueId id : memory->values) {
    if (value(id).elements.are_those_of(tensor, memory->shift)) return id;
  }
  return {};
}

at::Tensor TensorTable::given(TraceValueId id) const { return over(room_.memories[value(id).memory.index].held, id); }

at::Tensor TensorTable::over(c10::Storage storage, TraceValueId id) const {
  const TraceValue& known = value(id);
  const TraceMemoryId memory = known.memory;
  return tensor_over(std::move(storage), known.elements, this->known(memory).device,
                     room_.memories[memory.index].shift);
}

Elements TensorTable::elements_of(const at::Tensor& tensor) const {
  Elements elements = Elements::of(tensor);
  elements.offset -= shift_of(tensor);
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

bool TensorTable::lies_in_what_came(const TraceValue& inner) const {
  if (lies_inside(inner.elements, value(known(inner.memory).root).elements)) return true;
  const Memory& memory = room_.memories[inner.memory.index];
  return memory.several_inputs && std::ranges::any_of(memory.values, [&](TraceValueId id) {
           const TraceValue& outer = value(id);
           return outer.from == TraceValue::From::input && lies_inside(inner.elements, outer.elements);
         });
}

bool TensorTable::is_deferred(const at::Tensor& tensor) const {
  const Memory* memory = memory_of(tensor);
  return memory != nullptr && (known(id_of(*memory)).fresh || memory->written);
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
      .elements = elements_of(tensor),
      .alignment = known_address ? alignment_up_to(ir::full_alignment, address_of_closed(impl)) : ir::full_alignment}));
  return {static_cast<uint32_t>(room_.values.size() - 1)};
}

void TensorTable::add_memory(const TraceMemory& memory, const c10::Storage& storage) {
  room_.by_storage[storage.unsafeGetStorageImpl()] = static_cast<uint32_t>(room_.memories.size());
  add(memory, storage);
  if (!memory.fresh) room_.memories.back().held = storage;
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
  const auto number = number_of(storage_of(*tensor.unsafeGetTensorImpl()));
  if (!number) return add_value(tensor, add_memory(tensor, false), TraceValue::From::input);
  if (const TraceValueId known = find(tensor); known.valid()) return known;
  const TraceMemoryId id{*number};
  const bool inside = lies_inside(elements_of(tensor), value(known(id).root).elements);
  if (inside) return add_value(tensor, id, TraceValue::From::look);
  note_several_inputs(id);
  return add_value(tensor, id, TraceValue::From::input);
}

/// What decides whether a tensor is looked at or another input follows from its elements and those of the memory's
/// root: they are as recorded.
bool TensorTable::take_as(const TraceValue& expected, const TraceMemory* memory, const at::Tensor& tensor) {
  const auto& impl = *tensor.unsafeGetTensorImpl();
  const int64_t shift =
      memory == nullptr ? room_.memories[expected.memory.index].shift : distance(expected.elements, tensor);
  if (!expected.elements.are_those_of(tensor, shift)) return false;
  const c10::StorageImpl* storage = storage_of(impl);
  if (memory == nullptr) {
    if (room_.memories[expected.memory.index].storage._unsafe_get_target() != storage) return false;
  } else if (memory->device != tensor.device() || number_of(storage) || !lent_.lasts(*storage)) {
    return false;
  }
  const bool at_fixed_address = memory != nullptr || !known(expected.memory).fresh;
  const bool aligned = address_of_closed(impl) % static_cast<uintptr_t>(expected.alignment) == 0;
  if (at_fixed_address && !aligned && !planted(Bug::alignment_not_guarded)) return false;
  if (memory != nullptr) {
    add_memory(*memory, tensor.storage());
    room_.memories.back().shift = shift;
  } else if (expected.from == TraceValue::From::input) {
    note_several_inputs(expected.memory);
  }
  add(expected);
  return true;
}

void TensorTable::note_arrivals() {
  for (uint32_t i = 0; i < room_.memories.size(); ++i)
    room_.by_storage[room_.memories[i].storage._unsafe_get_target()] = i;
}

void TensorTable::note_several_inputs(TraceMemoryId memory) {
  if (room_.memories[memory.index].several_inputs) return;
  room_.memories[memory.index].several_inputs = true;
  split_.push_back(memory);
}

TraceValueId TensorTable::give(const at::Tensor& tensor) {
  if (const TraceValueId known = find(tensor); known.valid()) return known;
  const auto number = number_of(storage_of(*tensor.unsafeGetTensorImpl()));
  const TraceMemoryId memory = number ? TraceMemoryId{*number} : add_memory(tensor, true);
  return add_value(tensor, memory, TraceValue::From::result);
}

void TensorTable::begin_call() {
  values_before_ = room_.values.size();
  memories_before_ = room_.memories.size();
  split_.clear();
}

TensorTable::Added TensorTable::added() const {
  return {std::span(room_.values).subspan(values_before_), std::span(room_.known).subspan(memories_before_)};
}

void TensorTable::forget_added() {
  for (const TraceMemoryId memory : split_) room_.memories[memory.index].several_inputs = false;
  split_.clear();
  for (size_t i = room_.values.size(); i-- > values_before_;)
    room_.memories[room_.values[i]->memory.index].values.pop_back();
  room_.values.resize(values_before_);
  for (size_t i = memories_before_; i < room_.memories.size(); ++i) {
    room_.by_storage.erase(room_.memories[i].storage._unsafe_get_target());
  }
  room_.memories.erase(room_.memories.begin() + static_cast<std::ptrdiff_t>(memories_before_), room_.memories.end());
  room_.known.resize(memories_before_);
}

void TensorTable::clear() {
  room_.values.clear();
  room_.memories.clear();
  room_.known.clear();
  own_values_.clear();
  own_memories_.clear();
  room_.by_storage.clear();
  split_.clear();
  values_before_ = memories_before_ = 0;
}

}  // namespace sinter::frontend
