#include "frontend/state_guards.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "compiler/support/planted.h"

namespace sinter::frontend {
namespace {

const c10::TensorImpl& impl(const at::Tensor& tensor) { return *tensor.unsafeGetTensorImpl(); }

const void* pointer_to(const c10::TensorImpl& tensor) { return reinterpret_cast<const void*>(address_of(tensor)); }

/// Address of a storage's first byte, also of one that is copied on its next write.
uintptr_t base_of(const c10::StorageImpl& storage) {
  return reinterpret_cast<uintptr_t>(const_cast<c10::StorageImpl&>(storage)._mutable_data_ptr_no_checks().get());
}

uint32_t count_of(const c10::TensorImpl& tensor) {
  return c10::raw::intrusive_ptr::use_count(const_cast<c10::TensorImpl*>(&tensor));
}

/// How many tensors ahead of its check one is fetched: its object spans three lines, scattered over the heap.
constexpr size_t kAhead = 8;

void prefetch(const c10::TensorImpl* tensor) {
  constexpr size_t line = 64;
  const auto* bytes = reinterpret_cast<const char*>(tensor);
  for (size_t at = 0; at < sizeof(c10::TensorImpl); at += line) __builtin_prefetch(bytes + at);
}

/// References to a state tensor that stay when the results of the recorded call are gone.
uint32_t lasting_references(const at::Tensor& state, std::span<const at::Tensor> results) {
  // The graph behind a result with a history holds state in ways that cannot be counted.
  const bool history =
      std::any_of(results.begin(), results.end(), [](const at::Tensor& t) { return t.grad_fn() != nullptr; });
  if (history) return 1;
  int64_t references = static_cast<int64_t>(state.use_count()) - 1;
  for (const auto& result : results) {
    // A result that is the state itself is held here and by the caller, a view of it holds its base once.
    if (result.is_same(state)) {
      references -= 2;
    } else if (storage_of(impl(result)) == storage_of(impl(state))) {
      references -= 1;
    }
  }
  return static_cast<uint32_t>(std::max<int64_t>(references, 1));
}

/// Equal at all places below `rank`; `there` is as long.
template <size_t rank>
bool equal(const std::array<uint32_t, 4>& here, const int64_t* there) {
  for (size_t i = 0; i < rank; ++i) {
    if (static_cast<int64_t>(here[i]) != there[i]) return false;
  }
  return true;
}

bool fits_words(c10::IntArrayRef numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](int64_t number) {
    return number >= 0 && number <= static_cast<int64_t>(std::numeric_limits<uint32_t>::max());
  });
}

}  // namespace

void StateGuards::add(std::span<const StateSlot> slots, std::span<const at::Tensor> results) {
  for (const auto& slot : slots) {
    const auto strong = lock(slot.tensor);
    if (!strong.defined()) continue;
    const auto& tensor = impl(strong);
    states_.push_back({slot.name, slot.tensor, lasting_references(strong, results), pointer_to(tensor),
                       tensor.requires_grad(), LayoutGuard(tensor), slot.read_by_host});
    const auto& state = states_.back();
    if (fits_record(state)) {
      records_[state.layout.sizes.size()].push_back(record_of(state));
    } else {
      others_.push_back(static_cast<uint32_t>(states_.size() - 1));
    }
  }
}

bool StateGuards::fits_record(const State& state) {
  const auto& tensor = *state.tensor._unsafe_get_target();
  const bool own_sizes = !tensor.has_symbolic_sizes_strides() && tensor.sizes().data() == tensor.sizes_default().data();
  return own_sizes && state.address != nullptr && !state.read_by_host.defined() &&
         state.layout.sizes.size() <= max_rank && state.references <= std::numeric_limits<uint16_t>::max() &&
         fits_words(state.layout.sizes) && fits_words(state.layout.strides);
}

StateGuards::Record StateGuards::record_of(const State& state) {
  Record record{.tensor = state.tensor._unsafe_get_target(),
                .address = reinterpret_cast<uintptr_t>(state.address),
                .keys = state.layout.keys,
                .references = static_cast<uint16_t>(state.references),
                .dtype = c10::scalarTypeToTypeMeta(state.layout.dtype),
                .device = state.layout.device,
                .itemsize = static_cast<uint8_t>(c10::elementSize(state.layout.dtype)),
                .requires_grad = state.requires_grad,
                .sizes = {},
                .strides = {}};
  std::copy(state.layout.sizes.begin(), state.layout.sizes.end(), record.sizes.begin());
  std::copy(state.layout.strides.begin(), state.layout.strides.end(), record.strides.begin());
  return record;
}

/// Of the tensor nothing but its count may be read before it is known to live, and its storage only when its keys say
/// that it has one. What LibTorch reads through virtual functions where subclasses want it so comes last: the compiler
/// keeps nothing in registers across such a call.
template <size_t rank, bool differentiates>
bool StateGuards::hold(std::span<const Record> records) {
  for (size_t i = 0; i < records.size(); ++i) {
    if (i + kAhead < records.size()) prefetch(records[i + kAhead].tensor);
    const Record& record = records[i];
    const auto& now = *record.tensor;
    if (count_of(now) < record.references || now.key_set().raw_repr() != record.keys) return false;
    const auto& storage = *now.unsafe_storage().unsafeGetStorageImpl();
    const auto offset = static_cast<uintptr_t>(now.storage_offset_default()) * record.itemsize;
    if (base_of(storage) + offset != record.address || now.dtype() != record.dtype) return false;
    if (now.sizes_default().size() != rank || !equal<rank>(record.sizes, now.sizes_default().data())) return false;
    if (!equal<rank>(record.strides, now.strides_default().data()) && !planted(Bug::strides_not_guarded)) return false;
    if (now.device() != record.device) return false;
    if (differentiates && now.requires_grad() != record.requires_grad) return false;
  }
  return true;
}

bool StateGuards::hold(bool differentiates) const {
  if (planted(Bug::stale_weight)) return true;
  const auto hold_ranks = [this]<bool gradients, size_t... ranks>(std::bool_constant<gradients>,
                                                                  std::index_sequence<ranks...>) {
    return (hold<ranks, gradients>(records_[ranks]) && ...);
  };
  constexpr std::make_index_sequence<max_rank + 1> ranks;
  if (!(differentiates ? hold_ranks(std::true_type(), ranks) : hold_ranks(std::false_type(), ranks))) return false;
  return std::all_of(others_.begin(), others_.end(),
                     [&](uint32_t index) { return states_[index].holds(differentiates); });
}

bool StateGuards::lost() const {
  return std::any_of(states_.begin(), states_.end(), [](const State& state) { return !state.is_there(); });
}

void StateGuards::misses(bool differentiates, std::vector<GuardMiss>& out) const {
  for (const auto& state : states_) state.misses(differentiates, out);
}

void StateGuards::describe(std::vector<std::string>& words) const {
  for (const auto& state : states_) {
    words.push_back("state " + state.name + ": " + state.layout.text() + " on " + state.layout.device.str() +
                    ", same memory, at least " + std::to_string(state.references) + " references" +
                    (state.read_by_host.defined() ? ", same value" : ""));
  }
}

std::vector<int64_t> StateGuards::alignments() const {
  std::vector<int64_t> result;
  for (const auto& state : states_) {
    result.push_back(alignment_up_to(256, reinterpret_cast<uintptr_t>(state.address)));
  }
  return result;
}

std::vector<StateGuards::NamedStorage> StateGuards::storages() const {
  std::vector<NamedStorage> result;
  for (const auto& state : states_) result.push_back({state.name, storage_of(*state.tensor._unsafe_get_target())});
  return result;
}

bool StateGuards::State::is_there() const {
  return tensor.use_count() >= references && pointer_to(*tensor._unsafe_get_target()) == address;
}

bool StateGuards::State::holds(bool differentiates) const {
  if (!is_there()) return false;
  const auto& now = *tensor._unsafe_get_target();
  return layout.holds(now) && (!differentiates || now.requires_grad() == requires_grad) && holds_as_read(now);
}

bool StateGuards::State::holds_as_read(const c10::TensorImpl& now) const {
  if (!read_by_host.defined()) return true;
  const size_t bytes = read_by_host.storage().nbytes();
  return bytes == 0 || std::memcmp(pointer_to(now), read_by_host.const_data_ptr(), bytes) == 0;
}

void StateGuards::State::misses(bool differentiates, std::vector<GuardMiss>& out) const {
  const auto subject = "state " + name;
  const auto strong = lock(tensor);
  if (!strong.defined()) return out.push_back({subject, "alive", "gone"});
  if (strong.use_count() - 1 < references) {
    return out.push_back(
        {subject + ": references", std::to_string(references), std::to_string(strong.use_count() - 1)});
  }
  const auto& now = impl(strong);
  const bool in_place = pointer_to(now) == address;
  if (!in_place) out.push_back({subject + ": memory", "where it was captured", "elsewhere"});
  layout.misses(subject, now, out);
  if (in_place && layout.holds(now) && !holds_as_read(now)) {
    out.push_back({subject + ": value", "what the host read", "another"});
  }
  if (differentiates && now.requires_grad() != requires_grad) {
    out.push_back({subject + ": requires_grad", yes_no(requires_grad), yes_no(now.requires_grad())});
  }
}

}  // namespace sinter::frontend
