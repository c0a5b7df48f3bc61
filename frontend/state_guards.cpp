#include "frontend/state_guards.h"

#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "compiler/support/planted.h"

namespace sinter::frontend {
namespace {

const c10::TensorImpl& impl(const at::Tensor& tensor) { return *tensor.unsafeGetTensorImpl(); }

const void* pointer_to(const c10::TensorImpl& tensor) { return reinterpret_cast<const void*>(address_of(tensor)); }

uint32_t count_of(const c10::TensorImpl& tensor) {
  return c10::raw::intrusive_ptr::use_count(const_cast<c10::TensorImpl*>(&tensor));
}

/// References to a state tensor that stay when the results of the recorded call are gone.
uint32_t lasting_references(const at::Tensor& state, std::span<const at::Tensor> results) {
  // The graph behind a result with a history holds state in ways that cannot be counted.
  if (std::ranges::any_of(results, has_history)) return 1;
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

/// Address of a storage's first byte, also of one that is copied on its next write.
const void* first_byte(const c10::StorageImpl& storage) {
  return const_cast<c10::StorageImpl&>(storage)._mutable_data_ptr_no_checks().get();
}

using torch::autograd::AutogradMeta;

const AutogradMeta* autograd_of(const c10::TensorImpl& tensor) {
  return static_cast<const AutogradMeta*>(TensorWords::autograd_meta(tensor));
}

/// True where more than a flag of its own may make a tensor require gradients: a history, or the base of a view.
bool asks_others(const AutogradMeta& autograd) { return autograd.is_view_ || autograd.grad_fn_ != nullptr; }

/// True when hooks were ever put on the gradient. Asks for the half of the pointer that lies in one line of the cache
/// with the flag `requires_grad_`.
bool had_hooks(const AutogradMeta& autograd) { return autograd.cpp_hooks_list_.use_count() != 0; }

/// How many tensors ahead of its check one is fetched: its object spans three lines, scattered over the heap.
constexpr size_t kAhead = 4;

/// Inlined, or GCC takes a call that changes nothing for one that does nothing.
[[gnu::always_inline]] inline void prefetch(const c10::TensorImpl& tensor) {
  const auto* bytes = reinterpret_cast<const char*>(&tensor);
  constexpr size_t counts = 8, line = 64;
  for (size_t at = counts; at < sizeof(c10::TensorImpl); at += line) __builtin_prefetch(bytes + at);
}

}  // namespace

void StateGuards::add(std::span<const StateSlot> slots, std::span<const at::Tensor> results) {
  KnownWords known;
  for (const auto& slot : slots) {
    const auto strong = lock(slot.tensor);
    if (!strong.defined()) continue;
    const auto& tensor = impl(strong);
    states_.push_back({slot.name, slot.tensor, lasting_references(strong, results), pointer_to(tensor),
                       tensor.requires_grad(), Hooks::of(tensor), LayoutGuard(tensor), slot.read_by_host});
    add_record(states_.size() - 1, known);
  }
  std::ranges::sort(records_, {}, &Record::tensor);
}

bool StateGuards::fits_record(const State& state) const {
  if (!reads_words_) return false;
  const auto& tensor = *state.tensor._unsafe_get_target();
  const auto* autograd = autograd_of(tensor);
  if (autograd != tensor.autograd_meta() || (autograd != nullptr && (asks_others(*autograd) || had_hooks(*autograd))))
    return false;
  return TensorWords::describe(tensor) && !state.read_by_host.defined() &&
         state.references <= std::numeric_limits<uint16_t>::max();
}

void StateGuards::add_record(size_t index, KnownWords& known) {
  const State& state = states_[index];
  constexpr size_t most_words = std::numeric_limits<uint16_t>::max();
  if (!fits_record(state) || words_.size() == most_words) return others_.push_back(index);
  const auto& tensor = *state.tensor._unsafe_get_target();
  const auto [words, is_new] = known.emplace(TensorWords::of(tensor), words_.size());
  if (is_new) words_.push_back({words->first});
  records_.push_back({.tensor = &tensor,
                      .base = first_byte(*storage_of(tensor)),
                      .references = static_cast<uint16_t>(state.references),
                      .words = static_cast<uint16_t>(words->second),
                      .state = static_cast<uint32_t>(index),
                      .requires_grad = state.requires_grad});
}

/// Of the tensor nothing but its count may be read before it is known to live, and its storage only when its keys say
/// that it has one.
template <bool differentiates, StateGuards::Equal equal>
bool StateGuards::is_unchanged(const Record& record, const Words& words) {
  const auto& now = *record.tensor;
  if (count_of(now) < record.references || !equal(now, words.copy)) return false;
  if (first_byte(*storage_of(now)) != record.base) return false;
  if (!differentiates) return true;
  const auto* autograd = autograd_of(now);
  if (record.requires_grad) {
    return autograd != nullptr && autograd->requires_grad_ && !had_hooks(*autograd);
  }
  return autograd == nullptr || !(autograd->requires_grad_ || asks_others(*autograd));
}

template <bool differentiates, StateGuards::Equal equal>
bool StateGuards::hold_all() const {
  const Words* const words = words_.data();
  const Record* const end = records_.data() + records_.size();
  for (const Record* record = records_.data(); record != end; ++record) {
    prefetch(*std::min(record + kAhead, end - 1)->tensor);
    if (is_unchanged<differentiates, equal>(*record, words[record->words])) continue;
    if (!states_[record->state].holds(differentiates)) return false;
  }
  return std::ranges::all_of(others_, [this](size_t index) { return states_[index].holds(differentiates); });
}

#ifdef __x86_64__
bool StateGuards::hold_avx2(bool differentiates) const {
  constexpr Equal equal = &TensorWords::equal_avx2;
  return differentiates ? hold_all<true, equal>() : hold_all<false, equal>();
}
#endif

bool StateGuards::hold(bool differentiates) const {
  if (planted(Bug::stale_weight)) return true;
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") != 0) return hold_avx2(differentiates);
#endif
  constexpr Equal equal = &TensorWords::equal;
  return differentiates ? hold_all<true, equal>() : hold_all<false, equal>();
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
  const bool differentiates_alike =
      !differentiates || (now.requires_grad() == requires_grad && Hooks::of(now) == hooks);
  return layout.holds(now) && differentiates_alike && holds_as_read(now);
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
  if (const Hooks hooks_now = Hooks::of(now); differentiates && hooks_now != hooks) {
    const auto text = [](const Hooks& of) { return std::to_string(of.count()); };
    out.push_back({subject + ": hooks on its gradient", text(hooks), text(hooks_now) + ", not all the same"});
  }
}

}  // namespace sinter::frontend
