#include "frontend/guards.h"

#include <algorithm>

#include "compiler/support/planted.h"
#include "frontend/cuda.h"
#include "frontend/hooks.h"
#include "frontend/tensor_memory.h"

namespace sinter::frontend {
namespace {

const c10::TensorImpl& impl(const at::Tensor* tensor) { return *tensor->unsafeGetTensorImpl(); }

}  // namespace

bool is_plain(const at::Tensor& tensor) {
  const auto& t = impl(&tensor);
  if (t.layout() != c10::kStrided || !t.has_storage() || tensor.is_meta()) return false;
  if (tensor.is_quantized() || tensor.is_nested() || tensor.is_conj() || tensor.is_neg() || tensor._is_zerotensor()) {
    return false;
  }
  if (t.has_symbolic_sizes_strides() || t.is_python_dispatch()) return false;
  return !has_tangent(t) && (tensor.device().is_cpu() || tensor.device().is_cuda());
}

int64_t alignment_of(const at::Tensor& tensor) {
  return alignment_up_to(tensor.is_cuda() ? 256 : 64, address_of(impl(&tensor)));
}

Guards::Guards(const detail::Flat& arguments, const Modes& modes, TrainFlags train_flags)
    : structure_(arguments.structure.begin(), arguments.structure.end()),
      modes_(modes),
      bound_(std::make_unique<std::atomic<const c10::StorageImpl*>[]>(arguments.tensors.size())),
      train_flags_(std::move(train_flags)) {
  for (size_t i = 0; i < arguments.tensors.size(); ++i) {
    const auto& tensor = impl(arguments.tensors[i]);
    Input input{LayoutGuard(tensor),           tensor.requires_grad(),
                Hooks::of(tensor).count() > 0, alignment_of(*arguments.tensors[i]),
                Sharing::of(arguments, i),     tensor.unsafe_storage().getWeakStorageImpl()};
    bound_[i].store(storage_of(tensor), std::memory_order_relaxed);
    inputs_.push_back(std::move(input));
  }
}

void Guards::free_moved(const detail::Flat& arguments) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (is_moved(i, arguments)) bound_[i].store(nullptr, std::memory_order_relaxed);
  }
}

void Guards::free_as(const Guards& other) {
  for (size_t i = 0; i < std::min(inputs_.size(), other.inputs_.size()); ++i) {
    if (other.bound_[i].load(std::memory_order_relaxed) == nullptr) bound_[i].store(nullptr, std::memory_order_relaxed);
  }
}

void Guards::free_all() {
  for (size_t i = 0; i < inputs_.size(); ++i) bound_[i].store(nullptr, std::memory_order_relaxed);
}

bool Guards::is_bound_to(const at::Tensor& tensor) const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (bound_[i].load(std::memory_order_relaxed) == storage_of(impl(&tensor))) return true;
  }
  return false;
}

bool Guards::is_moved(size_t index, const detail::Flat& arguments) const {
  const auto* bound = bound_[index].load(std::memory_order_relaxed);
  return bound != nullptr && bound != storage_of(impl(arguments.tensors[index]));
}

std::optional<std::string> Guards::keep_apart() {
  for (const auto& [name, storage] : states_.storages()) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].storage._unsafe_get_target() != storage) continue;
      return "input " + std::to_string(i) + " shares memory with " + name;
    }
    apart_.push_back(storage);
  }
  std::sort(apart_.begin(), apart_.end());
  return std::nullopt;
}

Fit Guards::fit(const detail::Flat& arguments, const Modes& modes) const {
  // What tells entries for several sizes apart first: there may be many. A nested tensor, which has none, has other
  // keys.
  const bool sized = !inputs_.empty() && !arguments.tensors.empty();
  if (sized && !inputs_[0].layout.same_sizes(impl(arguments.tensors[0]))) return Fit::none;
  if (!(modes == modes_) || arguments.tensors.size() != inputs_.size()) return Fit::none;
  const std::string_view structure(arguments.structure.data(), arguments.structure.size());
  if (structure != structure_ && !planted(Bug::scalars_not_guarded)) return Fit::none;
  bool moved = false;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!input_holds(i, arguments)) return Fit::none;
    moved = moved || is_moved(i, arguments);
  }
  if (!rest_holds(arguments)) return Fit::none;
  return moved ? Fit::moved : Fit::full;
}

bool Guards::fit_but_for_sizes(const detail::Flat& arguments, const Modes& modes) const {
  if (!(modes == modes_) || arguments.tensors.size() != inputs_.size()) return false;
  if (std::string_view(arguments.structure.data(), arguments.structure.size()) != structure_) return false;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const auto& tensor = impl(arguments.tensors[i]);
    if (!inputs_[i].layout.holds_but_for_sizes(tensor) || !differentiates_alike(inputs_[i], tensor)) return false;
    if (Sharing::of(arguments, i) != inputs_[i].sharing || lies_in_state(tensor)) return false;
  }
  return rest_holds(arguments);
}

bool Guards::rest_holds(const detail::Flat& arguments) const {
  if (cuda_device_ >= 0 && cuda::current_device() != cuda_device_) return false;
  if (optimizers_ && !optimizers_->holds()) return false;
  return gradients_.hold(arguments) && train_flags_.hold() && states_.hold(differentiates());
}

bool Guards::input_holds(size_t index, const detail::Flat& arguments) const {
  const auto& input = inputs_[index];
  const auto& tensor = impl(arguments.tensors[index]);
  if (!input.layout.holds(tensor)) return false;
  if (!differentiates_alike(input, tensor) && !planted(Bug::gradients_not_guarded)) return false;
  const bool aligned = (address_of(tensor) & static_cast<uintptr_t>(input.alignment - 1)) == 0;
  if (!aligned && !planted(Bug::alignment_not_guarded)) return false;
  return Sharing::of(arguments, index) == input.sharing && !lies_in_state(tensor);
}

bool Guards::differentiates_alike(const Input& input, const c10::TensorImpl& tensor) const {
  if (tensor.requires_grad() != input.requires_grad || has_tangent(tensor)) return false;
  return !input.requires_grad || !differentiates() || (Hooks::of(tensor).count() > 0) == input.has_hooks;
}

bool Guards::lies_in_state(const c10::TensorImpl& tensor) const {
  return !apart_.empty() && std::binary_search(apart_.begin(), apart_.end(), storage_of(tensor));
}

Guards::Sharing Guards::Sharing::of(const detail::Flat& arguments, size_t index) {
  const auto& tensor = impl(arguments.tensors[index]);
  Sharing sharing;
  for (size_t j = 0; j < index; ++j) {
    const auto& other = impl(arguments.tensors[j]);
    if (storage_of(other) != storage_of(tensor)) continue;
    if (sharing.with < 0) {
      sharing.with = static_cast<int32_t>(j);
      sharing.distance = static_cast<int64_t>(address_of(tensor) - address_of(other));
    }
    if (&other != &tensor) continue;
    sharing.same = static_cast<int32_t>(j);
    break;
  }
  return sharing;
}

std::string Guards::Sharing::text() const {
  if (same >= 0) return "the same tensor as input " + std::to_string(same);
  if (with < 0) return "memory of its own";
  return "shared with input " + std::to_string(with) + " at a distance of " + std::to_string(distance) + " bytes";
}

bool Guards::lost() const { return gradients_.lost() || train_flags_.lost() || states_.lost(); }

std::vector<GuardMiss> Guards::misses(const detail::Flat& arguments, const Modes& modes) const {
  auto out = structure_differences(structure_, {arguments.structure.data(), arguments.structure.size()});
  for (size_t i = 0; i < std::min(inputs_.size(), arguments.tensors.size()); ++i) input_misses(i, arguments, out);
  states_.misses(differentiates(), out);
  for (auto& miss : modes_.differences(modes)) out.push_back(std::move(miss));
  for (auto& miss : train_flags_.misses()) out.push_back(std::move(miss));
  gradients_.misses(arguments, out);
  if (optimizers_) optimizers_->misses(out);
  if (cuda_device_ >= 0 && cuda::current_device() != cuda_device_) {
    out.push_back({"current CUDA device", std::to_string(cuda_device_), std::to_string(cuda::current_device())});
  }
  for (size_t i = 0; i < inputs_.size() && out.empty(); ++i) {
    if (is_moved(i, arguments))
      out.push_back({"input " + std::to_string(i) + ": identity", "a tensor of the callable", "another"});
  }
  return out;
}

void Guards::input_misses(size_t index, const detail::Flat& arguments, std::vector<GuardMiss>& out) const {
  const auto subject = "input " + std::to_string(index);
  const auto& input = inputs_[index];
  const auto& tensor = *arguments.tensors[index];
  input.layout.misses(subject, impl(&tensor), out);
  if (tensor.requires_grad() != input.requires_grad) {
    out.push_back({subject + ": requires_grad", yes_no(input.requires_grad), yes_no(tensor.requires_grad())});
  } else if (has_tangent(impl(&tensor))) {
    out.push_back({subject + ": tangent", yes_no(false), yes_no(true)});
  } else if (!differentiates_alike(input, impl(&tensor))) {
    out.push_back({subject + ": hooks on its gradient", yes_no(input.has_hooks), yes_no(!input.has_hooks)});
  }
  if (!is_plain(tensor)) return;
  if (const auto now = alignment_of(tensor); now < input.alignment) {
    out.push_back({subject + ": alignment", std::to_string(input.alignment), std::to_string(now)});
  }
  if (const auto now = Sharing::of(arguments, index); now != input.sharing) {
    out.push_back({subject + ": memory", input.sharing.text(), now.text()});
  }
}

std::vector<std::string> Guards::describe() const {
  std::vector<std::string> words;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const auto& input = inputs_[i];
    auto line = "input " + std::to_string(i) + ": " + input.layout.text() + " on " + input.layout.device.str() +
                ", aligned to " + std::to_string(input.alignment) + ", requires_grad " + yes_no(input.requires_grad);
    if (input.sharing.with >= 0) line += ", " + input.sharing.text();
    words.push_back(std::move(line));
  }
  states_.describe(words);
  for (auto& line : modes_.describe()) words.push_back(std::move(line));
  if (cuda_device_ >= 0) words.push_back("current CUDA device: " + std::to_string(cuda_device_));
  for (auto& line : train_flags_.describe()) words.push_back(std::move(line));
  gradients_.describe(words);
  if (optimizers_) optimizers_->describe(words);
  return words;
}

std::string Guards::signature() const {
  std::string text;
  for (const auto& input : inputs_) text += (text.empty() ? "" : ", ") + input.layout.text();
  return text;
}

std::vector<int64_t> Guards::alignments() const {
  std::vector<int64_t> result;
  for (const auto& input : inputs_) result.push_back(input.alignment);
  gradients_.alignments(result);
  return result;
}

}  // namespace sinter::frontend
