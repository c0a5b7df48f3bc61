#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <optional>

#include "frontend/replay/autograds_part.h"
#include "frontend/replay/session.h"
#include "frontend/replay/step_recorder.h"
#include "frontend/torch/convert.h"

/// How a session answers operators before autograd sees them.
namespace sinter::frontend {
void Session::call_above_autograd(const c10::OperatorHandle& op, c10::DispatchKeySet below, torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  std::unique_lock lock(mutex_);
  if (!off_ && log_) log_->look_at(arguments);
  Answer answer;
  if (match_above_autograd(op, below, arguments_of(arguments), answer)) return replace_arguments(op, answer, stack);
  const bool may_open = !off_ && !recording_ && is_plain_call(below);
  if (may_open && library_->traits(op).opens) return open(op, below, stack, lock);
  lock.unlock();
  op.redispatchBoxed(below, stack);
}

bool Session::answer_above_autograd(const c10::OperatorHandle& op, c10::DispatchKeySet below, CallArguments arguments,
                                    Answer& answer) {
  const std::lock_guard lock(mutex_);
  return !log_ && match_above_autograd(op, below, arguments, answer);
}

bool Session::match_above_autograd(const c10::OperatorHandle& op, c10::DispatchKeySet below, CallArguments arguments,
                                   Answer& answer) {
  if (off_ || recording_ || !is_plain_call(below)) return false;
  if (at_ == nullptr) begin_segment();
  if (has_tangent(arguments)) return false;
  const bool tracked = is_tracked(below);
  for (const auto* shortcut = at_->shortcuts.load(std::memory_order_acquire); shortcut != nullptr;
       shortcut = shortcut->next) {
    if (shortcut->op == op && answer_by(*shortcut, arguments, answer)) return true;
  }
  const PathNode* candidate = PathTree::first_call_of(*at_, op);
  if (candidate == nullptr || (tracked && !can_do_autograds_part(candidate->step.above, arguments))) return false;
  const Part part = tracked ? Part::kernels_and_autograds : Part::kernels;
  return may_match(candidate->step) && answer_known(op, part, arguments, answer);
}

/// Gives the results of all of a shortcut's steps at once.
bool Session::answer_by(const Shortcut& shortcut, CallArguments arguments, Answer& answer) {
  if (shortcut.inference != c10::InferenceMode::is_enabled() || shortcut.tracked != is_any_tracked(arguments)) {
    return false;
  }
  if (!surroundings_->are_current(shortcut.settings)) return false;
  const auto is_tracked_otherwise = [&](const Returned& item) {
    return item.how == Returned::How::value && item.base &&
           is_tracked(*tensor_in(arguments[*item.base])) != shortcut.tracked;
  };
  if (std::ranges::any_of(shortcut.returns, is_tracked_otherwise)) return false;
  table_.begin_call();
  if (!take(shortcut, arguments, table_)) {
    table_.forget_added();
    return false;
  }
  FreshStorages fresh = stand_ins_for(shortcut.given);
  for (const Returned& item : shortcut.returns) {
    answer.push_back(returned(item, arguments, fresh));
    if (shortcut.tracked && item.how == Returned::How::value && item.base) {
      note_view(*tensor_in(arguments[*item.base]), answer.back().toTensor());
    }
  }
  go_along(shortcut.steps, shortcut.settings);
  return true;
}

/// Memory of known steps that tensors of the program will lie in.
Session::FreshStorages Session::stand_ins_for(std::span<const TraceMemoryId> memories) {
  FreshStorages fresh;
  for (const TraceMemoryId id : memories) {
    const TraceMemory& memory = table_.known(id);
    fresh.emplace_back(id, stand_in_storage(memory.device, memory.bytes, id.index));
    table_.set_storage(id, fresh.back().second);
  }
  return fresh;
}

/// Several steps were matched together.
void Session::go_along(std::span<const PathNode* const> steps, SettingSet settings) {
  for (const PathNode* node : steps) note_writes(node->step);
  settings_matter_ = settings_matter_ || !settings.empty();
  if (!steps.empty()) go_to(const_cast<PathNode&>(*steps.back()), const_cast<PathNode&>(*steps.front()));
}

bool Session::all_was_answered(const Since& since) const {
  return unanswered_ == since.unanswered && account_.segments == since.segments && tree_ == since.tree &&
         at_ != nullptr && !recording_ && !off_;
}

/// Runs the kernel of a composite operator, whose calls are answered one by one, and notes what they were.
void Session::open(const c10::OperatorHandle& op, c10::DispatchKeySet below, torch::jit::Stack* stack,
                   std::unique_lock<std::mutex>& lock) {
  const Since before = now();
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size()).vec();
  lock.unlock();
  op.redispatchBoxed(below, stack);
  lock.lock();
  if (!all_was_answered(before) || has_tangent(arguments_of(arguments))) return;
  note_shortcut(
      *before.begin,
      {.op = op, .inference = c10::InferenceMode::is_enabled(), .tracked = is_any_tracked(arguments_of(arguments))},
      arguments, torch::jit::last(*stack, op.schema().returns().size()));
}

/// True for a result that is new memory of a step behind `begin`, or a view of an argument.
bool Session::can_be_given(const Returned& item, const at::Tensor& result, const Shortcut& shortcut,
                           c10::ArrayRef<c10::IValue> arguments, const PathNode& begin) const {
  if (!item.value.valid()) return false;
  if (item.base) return result.is_view() == shortcut.tracked || arguments[*item.base].toTensor().is_inference();
  const TraceMemoryId memory = table_.value(item.value).memory;
  return table_.known(memory).fresh && memory.index >= begin.memories && !result.is_view();
}

void Session::note_shortcut(PathNode& begin, Shortcut shortcut, c10::ArrayRef<c10::IValue> arguments,
                            c10::ArrayRef<c10::IValue> results) {
  auto steps = plain_steps_between(begin, *at_, table_);
  auto key = key_of(arguments, table_);
  if (!key || !steps) return;
  shortcut.steps = std::move(*steps);
  shortcut.key = std::move(*key);
  for (const PathNode* node : shortcut.steps) shortcut.settings |= node->step.settings;
  if (!shortcut.settings.empty() && !library_->traits(shortcut.op).chooses_by_concerns)
    shortcut.settings = SettingSet::all();
  const OpFacts& facts = library_->traits(shortcut.op).facts;
  const auto value_of = [this](const at::Tensor& tensor) { return table_.find_alone(tensor); };
  for (const c10::IValue& result : results) {
    Returned item = returned_like(facts, result, arguments, value_of);
    if (item.how == Returned::How::list) return;
    if (item.how == Returned::How::value) {
      if (!can_be_given(item, result.toTensor(), shortcut, arguments, begin)) return;
      if (!item.base) shortcut.given.push_back(table_.value(item.value).memory);
    }
    shortcut.returns.push_back(std::move(item));
  }
  tree_->add(begin, std::move(shortcut));
}

}  // namespace sinter::frontend
