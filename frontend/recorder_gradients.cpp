#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "frontend/hooks.h"
#include "frontend/recorder.h"

namespace sinter::frontend {
namespace {

using After = GradientSlot::After;

GraphBreak gradient_break(std::string reason, std::string hint) {
  return {BreakCode::needs_gradient, {}, {}, std::move(reason), std::move(hint)};
}

const c10::TensorImpl* gradient_of(const at::Tensor& leaf) {
  const at::Tensor& gradient = leaf.unsafeGetTensorImpl()->grad();
  return gradient.defined() ? gradient.unsafeGetTensorImpl() : nullptr;
}

}  // namespace

void Recorder::note_leaves(std::span<const NamedTensor> names, std::span<const WeakTensor> leaves) {
  for (const NamedTensor& named : names) {
    if (const at::Tensor tensor = lock(named.tensor); tensor.defined()) {
      note_leaf(tensor, named.name, std::nullopt, named.module);
    }
  }
  for (const WeakTensor& leaf : leaves) {
    if (const at::Tensor tensor = lock(leaf); tensor.defined()) note_leaf(tensor, {}, std::nullopt);
  }
}

/// Notes the gradient that a tensor has now, if this is the first that is heard of it.
void Recorder::note_leaf(const at::Tensor& tensor, const std::string& name, std::optional<uint32_t> input,
                         const std::string& module) {
  const auto* impl = tensor.unsafeGetTensorImpl();
  if (!tensor.is_leaf() || gradient_leaf_by_tensor_.contains(impl) || gradient_leaf_by_found_.contains(impl)) return;
  GradientLeaf leaf;
  leaf.tensor = weaken(tensor);
  leaf.slot.name = name;
  leaf.slot.input = input;
  if (!input) leaf.slot.leaf = leaf.tensor;
  if (const at::Tensor& found = impl->grad(); found.defined() && !unsupported_leaf(found)) {
    leaf.found = weaken(found);
    leaf.found_kind = MovingTensor::of(found);
    gradient_leaf_by_found_.emplace(found.unsafeGetTensorImpl(), gradient_leaves_.size());
    if (names_by_tensor_.try_emplace(found.unsafeGetTensorImpl(), names_.size()).second) {
      names_by_storage_.emplace(found.storage().unsafeGetStorageImpl(), names_.size());
      names_.push_back({name.empty() ? "gradient" : name + ".grad", module, leaf.found});
    }
  }
  leaf.slot.defined = impl->grad().defined();
  gradient_leaf_by_tensor_.emplace(impl, gradient_leaves_.size());
  gradient_leaves_.push_back(std::move(leaf));
}

/// The leaf that had this gradient when the call began.
Recorder::GradientLeaf* Recorder::finder_of(const c10::TensorImpl* gradient) {
  const auto found = gradient_leaf_by_found_.find(gradient);
  return found == gradient_leaf_by_found_.end() ? nullptr : &gradient_leaves_[found->second];
}

/// An operator in grad mode met a tensor that requires gradients. Where that tensor came with a history, a backward
/// would go on into what lies outside the call.
void Recorder::note_gradient_use(const at::Tensor& tensor, ir::ValueId value, const Pending& pending) {
  differentiates_ = true;
  if (root_of(value) != value || !outlives_call(value)) return;
  if (tensor.is_leaf()) return refuse_hooks(tensor, value, pending);
  GraphBreak reason = gradient_break(description(value) + " is the result of differentiable operators outside the call",
                                     "detach it, or compile what makes it too");
  reason.op = pending.facts->name;
  fail(std::move(reason), pending.frames, pending.module);
}

/// A hook is code of the program. On state it is there on every call, or a guard fails; an argument brings its own.
void Recorder::refuse_hooks(const at::Tensor& leaf, ir::ValueId value, const Pending& pending) {
  const bool is_argument = trace_.graph.producer(value).as<ir::Input>() != nullptr;
  if (!is_argument || Hooks::of(*leaf.unsafeGetTensorImpl()).count() == 0) return;
  GraphBreak reason = gradient_break("hooks on the gradient of " + description(value) + " are code of the caller",
                                     "register them inside of the compiled callable");
  reason.op = pending.facts->name;
  fail(std::move(reason), pending.frames, pending.module);
}

void Recorder::note_step(const WeakTensor& parameter, const Frames& frames) {
  if (auto function = optimizer_step(frames)) trace_.steps.push_back({std::move(*function), parameter});
}

/// The results, and after them every gradient that the program assigned.
std::vector<at::Tensor> Recorder::with_assigned_gradients(std::span<const at::Tensor> results) {
  std::vector<at::Tensor> outputs(results.begin(), results.end());
  for (GradientLeaf& leaf : gradient_leaves_) {
    const at::Tensor tensor = lock(leaf.tensor);
    if (!tensor.defined() || !recording_) continue;
    const auto* now = gradient_of(tensor);
    const auto* before = leaf.slot.defined ? leaf.found._unsafe_get_target() : nullptr;
    if (now == before) continue;
    leaf.slot.after = now == nullptr ? After::dropped : After::assigned;
    if (now == nullptr) continue;
    leaf.slot.output = static_cast<uint32_t>(outputs.size());
    outputs.push_back(tensor.unsafeGetTensorImpl()->grad());
  }
  return outputs;
}

/// A gradient that is only detached, as zero_grad() does before it drops it, was not used. One that something looks at
/// without an operator, as clip_grad_norm_() does through data(), was.
void Recorder::forget_unused_gradients() {
  if (!recording_) return;
  std::vector<uint32_t> uses = ir::use_counts(trace_.graph);
  for (const Leaf& look : leaves_) {
    if (look.base && uses[look.value.index] > 0) ++uses[look.base->base.index];
  }
  std::unordered_set<uint32_t> unused;
  const auto is_found = [this](const Leaf& leaf) {
    return !leaf.is_content && finder_of(leaf.tensor._unsafe_get_target()) != nullptr;
  };
  const auto& order = trace_.graph.order();
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    const ir::Node& node = trace_.graph.node(*id);
    const auto* call = node.as<ir::Call>();
    if (!call || call->op != "aten::detach" || uses[node.results[0].index] > 0) continue;
    const Leaf* leaf = leaf_of(root_of(node.results[0]));
    if (!leaf || !is_found(*leaf)) continue;
    --uses[node.args[0].value()->index];
    unused.insert(id->index);
  }
  std::erase_if(leaves_, [&](const Leaf& leaf) {
    return uses[leaf.value.index] == 0 && is_found(leaf) && unused.insert(leaf.node.index).second;
  });
  std::vector<ir::NodeId> rest = order;
  std::erase_if(rest, [&](ir::NodeId id) { return unused.contains(id.index); });
  trace_.graph.set_order(std::move(rest));
}

/// A gradient that the program found and used is found through its leaf on every call, wherever it lies, if nothing
/// else can reach it; else it is state, and must be there again. True in the first case.
bool Recorder::finish_found_gradient(const Leaf& leaf) {
  GradientLeaf* finder = finder_of(leaf.tensor._unsafe_get_target());
  if (finder == nullptr) return false;
  const at::Tensor tensor = lock(leaf.tensor);
  const at::Tensor holder = lock(finder->tensor);
  const bool held = tensor.defined() && holder.defined() && gradient_of(holder) == tensor.unsafeGetTensorImpl();
  const bool alone = held ? tensor.use_count() == 2 && tensor.storage().use_count() == 1 : leaf.storage.expired();
  if (leaf.base || !alone) {
    finder->slot.same = leaf.tensor;
    return false;
  }
  finder->slot.read = finder->found_kind;
  trace_.graph.node(leaf.node).payload = ir::Input{0};  // finish_gradients numbers them
  return true;
}

/// What autograd would go on with outside the call is nothing a replay leaves behind.
void Recorder::finish_histories(std::span<const at::Tensor> outputs) {
  if (!recording_) return;
  const auto changed = [this](const auto& weak, const History& before, const std::string& what) {
    const at::Tensor tensor = lock(weak);
    if (!recording_ || !tensor.defined() || History::of(tensor) == before) return;
    const bool grows = !tensor.is_leaf() && tensor.requires_grad();
    fail(gradient_break(what + (grows ? " takes part in a graph of gradients once the call is over"
                                      : " requires gradients before the call and not after it, or the other way round"),
                        "call requires_grad_() and detach_() outside the compiled callable"),
         {}, {});
  };
  for (size_t i = 0; i < inputs_.size(); ++i)
    changed(inputs_[i].tensor, inputs_[i].history, fmt::format("input {}", i));
  for (const Leaf& leaf : leaves_) {
    if (!leaf.is_content) changed(leaf.tensor, leaf.history, description(leaf.value));
  }
  for (size_t i = 0; i < outputs.size() && recording_; ++i) {
    const at::Tensor& output = outputs[i];
    const ir::ValueId root = root_of(trace_.graph.outputs[i]);
    const auto is_it = [&](const auto& known) {
      return known.tensor._unsafe_get_target() == output.unsafeGetTensorImpl();
    };
    const bool itself = outlives_call(root) && (std::any_of(inputs_.begin(), inputs_.end(), is_it) ||
                                                std::any_of(leaves_.begin(), leaves_.end(), is_it));
    if (!output.requires_grad() || itself) continue;
    fail(gradient_break("a result requires gradients",
                        "call backward() inside the callable too, return result.detach(), or call it under "
                        "torch::NoGradGuard"),
         {}, {});
  }
}

/// A gradient that the program assigned and keeps elsewhere too.
void Recorder::finish_kept_gradients(std::span<const at::Tensor> results, std::span<const at::Tensor> outputs) {
  const auto count = [](std::span<const at::Tensor> tensors, const at::Tensor& wanted) {
    return std::count_if(tensors.begin(), tensors.end(), [&](const at::Tensor& t) { return t.is_same(wanted); });
  };
  const auto assigned = outputs.subspan(results.size());
  for (size_t i = 0; i < assigned.size() && recording_; ++i) {
    const bool made = !outlives_call(root_of(trace_.graph.outputs[results.size() + i]));
    // Held here and by its leaf, as often as it is a gradient.
    const auto known = 2 * count(assigned, assigned[i]);
    if (!made || count(results, assigned[i]) > 0 || static_cast<int64_t>(assigned[i].use_count()) <= known) continue;
    fail({BreakCode::state_mutation,
          {},
          {},
          "keeps a gradient that it made (in a captured variable or a member)",
          "return it, and keep it outside the compiled callable"},
         {}, {});
  }
}

std::string Recorder::final_name(const GradientLeaf& leaf) {
  if (!leaf.slot.name.empty()) return leaf.slot.name;
  const auto found = std::find_if(leaves_.begin(), leaves_.end(), [&](const Leaf& known) {
    return known.tensor._unsafe_get_target() == leaf.tensor._unsafe_get_target();
  });
  return found == leaves_.end() ? "a closed-over tensor" : trace_.graph.value(found->value).hint;
}

/// Numbers the gradients that are inputs and lists every leaf whose gradient matters to a replay.
void Recorder::finish_gradients() {
  if (!recording_) return;
  auto next_input = static_cast<uint32_t>(inputs_.size());
  for (GradientLeaf& leaf : gradient_leaves_) {
    const at::Tensor tensor = lock(leaf.tensor);
    if (!tensor.defined()) continue;
    GradientSlot& slot = leaf.slot;
    const bool used = slot.read || slot.same._unsafe_get_target() != nullptr || slot.after != After::kept;
    if (!used && !(differentiates_ && (tensor.requires_grad() || slot.defined))) continue;
    slot.name = final_name(leaf);
    if (slot.read) {
      const auto is_it = [&](const Leaf& known) {
        return !known.is_content && known.tensor._unsafe_get_target() == leaf.found._unsafe_get_target();
      };
      const auto found = std::find_if(leaves_.begin(), leaves_.end(), is_it);
      trace_.graph.node(found->node).payload = ir::Input{next_input++};
      trace_.graph.value(found->value).hint = slot.name + ".grad";
    }
    trace_.gradients.push_back(slot);
  }
}

}  // namespace sinter::frontend
