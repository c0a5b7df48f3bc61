#include "compiler/support/errors.h"
#include "frontend/replay/autograds_part.h"
#include "frontend/replay/session.h"

/// How a session answers an operator that is a known step.
namespace sinter::frontend {
namespace {

c10::Storage take_fresh(Session::FreshStorages& fresh, TraceMemoryId memory) {
  for (auto& [id, storage] : fresh) {
    if (id == memory) return std::exchange(storage, c10::Storage());
  }
  return {};
}

}  // namespace

/// False where the work of the steps so far cannot be done together with this one's. Ends the segment if that is for
/// good.
bool Session::may_match(const Step& candidate) {
  if (!only_looks(candidate) && !surroundings_->are_current(candidate.settings)) return false;
  if (draws_.continues_with(candidate)) return true;
  synchronize("a generator that was set");
  return false;
}

bool Session::answer(const c10::OperatorHandle& op, CallArguments arguments, Answer& answer) {
  const std::lock_guard lock(mutex_);
  return !off_ && !log_ && match(op, arguments, answer);
}

/// Answers a call that is a step behind the last one; false where it is none. What decides when its work is done
/// (way_of) follows from what is compared, and from the steps before.
bool Session::match(const c10::OperatorHandle& op, CallArguments arguments, Answer& answer) {
  if (at_ == nullptr || recording_) return false;
  const PathNode* candidate = PathTree::first_call_of(*at_, op);
  return candidate != nullptr && may_match(candidate->step) && answer_known(op, Part::kernels, arguments, answer);
}

/// Answers a call that is one of the steps behind this place; false where it is none of them.
bool Session::answer_known(const c10::OperatorHandle& op, Part part, CallArguments arguments, Answer& answer) {
  CallNumbers numbers;
  PathNode* next = PathTree::find(*at_, op, arguments, table_, numbers);
  if (next == nullptr) return false;
  go_on(*next, numbers, part, arguments, answer);
  return true;
}

bool Session::answer_known(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Answer answer;
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  if (!answer_known(op, Part::kernels, arguments_of(arguments), answer)) return false;
  replace_arguments(op, answer, stack);
  return true;
}

/// Gives the results of a step that was matched.
void Session::go_on(PathNode& node, const CallNumbers& numbers, Part part, CallArguments arguments, Answer& answer) {
  const Step& step = node.step;
  const uint64_t live = node.live.load(std::memory_order_relaxed);
  for (uint32_t i = 0; live != 0 && i < step.numbers.size(); ++i) {
    if ((live >> i & 1) != 0) numbers_.push_back({node.depth - 1, i, step.numbers[i].value(numbers.bits[i])});
  }
  nodes_.note_step(live != 0);
  FreshStorages fresh;
  for (const TraceValue& value : step.made) {
    if (value.memory.index == table_.memories().size()) {
      const TraceMemory& memory = step.memories[step.memories.size() - (node.memories - value.memory.index)];
      fresh.emplace_back(value.memory, stand_in_storage(memory.device, memory.bytes, value.memory.index));
      table_.add(memory, fresh.back().second);
    }
    table_.add(value);
  }
  for (const Returned& item : step.returns) answer.push_back(returned(item, arguments, fresh));
  count_kernels_writes(step, arguments);
  if (part == Part::kernels_and_autograds) do_autograds_part(step, arguments, answer);
  note_writes(step);
  settings_matter_ = settings_matter_ || !step.settings.empty();
  if (step.data_rule != nullptr) refuse_in_log(step.facts->name + " may refuse its data");
  draws_.note(step);
  go_to(node, node);
}

c10::IValue Session::returned(const Returned& item, CallArguments arguments, FreshStorages& fresh) {
  switch (item.how) {
    case Returned::How::argument:
      return boxed(arguments[item.argument]);
    case Returned::How::value:
      return tensor_of(item, arguments, fresh);
    case Returned::How::list: {
      c10::List<at::Tensor> list;
      list.reserve(item.items.size());
      for (const Returned& inner : item.items) list.push_back(returned(inner, arguments, fresh).toTensor());
      return list;
    }
    case Returned::How::constant:
      return item.constant;
  }
  return {};
}

/// The first tensor over new memory takes it over.
at::Tensor Session::tensor_of(const Returned& item, CallArguments arguments, FreshStorages& fresh) {
  const TraceValue& value = table_.value(item.value);
  c10::Storage storage = take_fresh(fresh, value.memory);
  const bool is_new = static_cast<bool>(storage);
  if (!storage) storage = c10::Storage(table_.memory(value.memory).storage.lock());
  if (!storage) throw InternalError("replay", "a step sees memory that is gone");
  if (!item.base) {
    at::Tensor made = table_.over(std::move(storage), item.value);
    if (is_new) count_writes(made, item.writes);
    return made;
  }
  const c10::DispatchKeySet keys = tensor_in(arguments[*item.base])->key_set();
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, std::move(storage), keys,
                                                             c10::scalarTypeToTypeMeta(value.elements.dtype));
  view.unsafeGetTensorImpl()->set_sizes_and_strides(value.elements.sizes, value.elements.strides,
                                                    table_.offset_of(item.value));
  const ir::Reading& reading = value.elements.reading;
  if (view.is_conj() != reading.conjugated) view._set_conj(reading.conjugated);
  if (view.is_neg() != reading.negated) view._set_neg(reading.negated);
  return view;
}

}  // namespace sinter::frontend
