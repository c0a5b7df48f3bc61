#include "frontend/gradients.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/guards.h"

namespace sinter::frontend {
namespace {

using After = GradientSlot::After;

/// The leaf of a slot; null when it is gone.
const c10::TensorImpl* leaf_of(const GradientSlot& slot, const detail::Flat& arguments) {
  if (slot.input) return arguments.tensors[*slot.input]->unsafeGetTensorImpl();
  return slot.leaf.use_count() == 0 ? nullptr : slot.leaf._unsafe_get_target();
}

bool holds(const GradientSlot& slot, const detail::Flat& arguments) {
  const auto* leaf = leaf_of(slot, arguments);
  if (leaf == nullptr) return false;
  const at::Tensor& gradient = leaf->grad();
  if (gradient.defined() != slot.defined) return false;
  const auto* same = slot.same._unsafe_get_target();
  if (same != nullptr && same != gradient.unsafeGetTensorImpl()) return false;
  return !slot.read || slot.read->fits(*gradient.unsafeGetTensorImpl());
}

const char* word(bool defined) { return defined ? "defined" : "undefined"; }

std::string text_of(const GradientSlot& slot) {
  constexpr const char* after[] = {"kept", "dropped", "assigned"};
  return fmt::format("{}, {}{}", word(slot.defined), slot.read ? "read, " : "", after[static_cast<int>(slot.after)]);
}

}  // namespace

MovingTensor MovingTensor::of(const at::Tensor& tensor) {
  return {.dtype = tensor.scalar_type(),
          .device = tensor.device(),
          .keys = tensor.key_set().raw_repr(),
          .sizes = tensor.sizes().vec(),
          .strides = tensor.strides().vec(),
          .alignment = alignment_of(tensor)};
}

bool MovingTensor::fits(const c10::TensorImpl& tensor) const {
  if (tensor.key_set().raw_repr() != keys || tensor.dtype() != c10::scalarTypeToTypeMeta(dtype) ||
      tensor.device() != device || tensor.sizes() != c10::IntArrayRef(sizes) ||
      tensor.strides() != c10::IntArrayRef(strides)) {
    return false;
  }
  if ((address_of(tensor) & static_cast<uintptr_t>(alignment - 1)) != 0) return false;
  return c10::raw::intrusive_ptr::use_count(const_cast<c10::TensorImpl*>(&tensor)) == 1 &&
         tensor.unsafe_storage().use_count() == 1;
}

bool MovingTensor::same_kind(const MovingTensor& other) const {
  return dtype == other.dtype && device == other.device && keys == other.keys && sizes == other.sizes &&
         strides == other.strides && alignment <= other.alignment;
}

std::optional<std::string> gradient_difference(std::span<const GradientSlot> first,
                                               std::span<const GradientSlot> second) {
  for (size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
    const GradientSlot& a = first[i];
    const GradientSlot& b = second[i];
    if (a.input != b.input || a.leaf._unsafe_get_target() != b.leaf._unsafe_get_target()) {
      return fmt::format("the gradient of {}, then of {}", a.name, b.name);
    }
    if (a.after == b.after && a.output == b.output && a.read.has_value() == b.read.has_value()) continue;
    return fmt::format("the gradient of {}: {}, then {}", a.name, text_of(a), text_of(b));
  }
  if (first.size() == second.size()) return std::nullopt;
  return fmt::format("gradients of {} tensors, then of {}", first.size(), second.size());
}

bool found_alike(std::span<const GradientSlot> first, std::span<const GradientSlot> second) {
  const auto used = [](const GradientSlot& slot) { return slot.read || slot.same._unsafe_get_target() != nullptr; };
  const auto alike = [&](const GradientSlot& a, const GradientSlot& b) {
    if (a.defined != b.defined) return false;
    if (!used(a) || !used(b)) return true;
    return a.same._unsafe_get_target() == b.same._unsafe_get_target() && (!a.read || a.read->same_kind(*b.read));
  };
  return std::all_of(first.begin(), first.end(), [&](const GradientSlot& a) {
    const auto b = std::find_if(second.begin(), second.end(), [&](const GradientSlot& slot) {
      return slot.input == a.input && slot.leaf._unsafe_get_target() == a.leaf._unsafe_get_target();
    });
    return b == second.end() || alike(a, *b);
  });
}

detail::Flat with_gradients(const detail::Flat& arguments, std::span<const GradientSlot> slots,
                            const at::Tensor* instead) {
  detail::Flat all = arguments;
  for (const GradientSlot& slot : slots) {
    if (slot.read) all.tensors.push_back(instead != nullptr ? instead : &leaf_of(slot, arguments)->grad());
  }
  return all;
}

void assign_gradients(std::span<const GradientSlot> slots, const detail::Flat& arguments, detail::Replay& results) {
  size_t returned = results.tensors.size();
  for (const GradientSlot& slot : slots) {
    if (slot.after == After::kept) continue;
    const at::Tensor leaf = slot.input ? *arguments.tensors[*slot.input] : lock(slot.leaf);
    if (!leaf.defined()) continue;
    if (slot.after == After::dropped) {
      leaf.mutable_grad().reset();
      continue;
    }
    leaf.mutable_grad() = results.tensors[slot.output];
    returned = std::min<size_t>(returned, slot.output);
  }
  results.tensors.resize(returned);
}

bool GradientGuards::hold(const detail::Flat& arguments) const {
  return std::all_of(slots_.begin(), slots_.end(), [&](const GradientSlot& slot) { return holds(slot, arguments); });
}

bool GradientGuards::lost() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const GradientSlot& slot) { return !slot.input && slot.leaf.expired(); });
}

void GradientGuards::misses(const detail::Flat& arguments, std::vector<GuardMiss>& out) const {
  for (const GradientSlot& slot : slots_) {
    if (slot.input && *slot.input >= arguments.tensors.size()) continue;
    if (holds(slot, arguments)) continue;
    const auto* leaf = leaf_of(slot, arguments);
    const std::string subject = slot.name + ".grad";
    if (leaf == nullptr) {
      out.push_back({slot.name, "alive", "gone"});
    } else if (leaf->grad().defined() != slot.defined) {
      out.push_back({subject, word(slot.defined), word(leaf->grad().defined())});
    } else {
      out.push_back({subject, "as it was captured", "another one, of another kind, or held by others too"});
    }
  }
}

void GradientGuards::describe(std::vector<std::string>& words) const {
  for (const GradientSlot& slot : slots_) {
    words.push_back(fmt::format("{}.grad: {}{}", slot.name, word(slot.defined),
                                slot.read ? ", same kind of tensor, held by nobody else"
                                : slot.same._unsafe_get_target() != nullptr ? ", same tensor"
                                                                            : ""));
  }
}

void GradientGuards::alignments(std::vector<int64_t>& out) const {
  for (const GradientSlot& slot : slots_) {
    if (slot.read) out.push_back(slot.read->alignment);
  }
}

}  // namespace sinter::frontend
