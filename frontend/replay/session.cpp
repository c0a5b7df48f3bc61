#include "frontend/replay/session.h"

#include <string_view>

#include "compiler/support/first_line.h"
#include "frontend/replay/autograds_part.h"
#include "frontend/replay/backward_hook.h"
#include "frontend/replay/compiled_path.h"
#include "frontend/replay/dispatch_hook.h"
#include "frontend/replay/step_recorder.h"
#include "frontend/replay/way.h"
#include "frontend/torch/convert.h"
#include "frontend/trace/call_key.h"
#include "runtime/stopwatch.h"

namespace sinter::frontend {
namespace {

constexpr std::string_view kSessionSlotName = "sinter session";
constexpr auto kSessionSlot = debug_slot(kSessionSlotName, 0x57);

/// LibTorch's zeros without memory: what comes this far with one calls operators on tensors that have memory, or looks
/// at no data.
bool takes_zeros_without_memory(c10::ArrayRef<c10::IValue> arguments) {
  bool found = false;
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& tensor) { found = found || tensor._is_zerotensor(); });
  }
  return found;
}

GraphBreak unknown_argument(const OpFacts& facts) {
  return {.code = BreakCode::unsupported_op,
          .op = facts.name,
          .where = {},
          .reason = "takes an argument that cannot be compared with another one: an object of a class, or a stream",
          .hint = {}};
}

}  // namespace

void replace_arguments(const c10::OperatorHandle& op, Session::Answer& answer, torch::jit::Stack* stack) {
  torch::jit::drop(*stack, op.schema().arguments().size());
  for (c10::IValue& result : answer) stack->push_back(std::move(result));
}

Session* current_session() { return static_cast<Session*>(c10::ThreadLocalDebugInfo::get(kSessionSlot)); }

void with_session(const std::shared_ptr<Session>& session, const std::function<void()>& run) {
  install_backward_hook();
  const c10::DebugInfoGuard carry(kSessionSlot, session);
  const DispatchHook hook;
  const auto first = above_autograd_hook();
  run();
}

void Session::call(const c10::OperatorHandle& op, c10::DispatchKeySet below, torch::jit::Stack* stack) {
  std::unique_lock lock(mutex_);
  if (off_) {
    lock.unlock();
    return run_below(op, below, stack);
  }
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  if (log_) log_->look_at(arguments);
  Answer answer;
  if (match(op, arguments_of(arguments), answer)) return replace_arguments(op, answer, stack);
  const OpTraits& traits = library_->traits(op);
  const OpFacts& facts = traits.facts;
  const bool composite = facts.composite && !op.hasKernelForDispatchKey(below.highestPriorityTypeId());
  if (composite || takes_zeros_without_memory(arguments)) {
    note_other(op, arguments);
    lock.unlock();
    return op.redispatchBoxed(below, stack);
  }
  // Memory without content is nothing to a composite operator whose steps do not take it: batch_norm makes some.
  if (!facts.uninitialised || !facts.mutates.empty()) ++unanswered_;
  if (fills_what_nobody_reads(traits, arguments, table_, at_)) {
    note_other(op, arguments);
    account_.wrote = true;
    ++account_.at_once;
    refuse_in_log("it fills memory of its own before a segment");
    keep_what_is_written(facts, arguments);
    lock.unlock();
    return run_below(op, below, stack);
  }
  switch (way_of(traits, arguments, table_)) {
    case Way::transparent:
      note_other(op, arguments);
      if (log_) return run_transparent(op, facts, below, stack);
      lock.unlock();
      return run_below(op, below, stack);
    case Way::now:
      if (can_be_a_step_of_the_next_segment(traits, arguments)) return step(op, traits, below, stack);
      if (tells_breaks_of(traits)) note_break(traits, arguments, break_of(traits, arguments));
      return run_now(op, traits, below, stack);
    case Way::later:
      return step(op, traits, below, stack);
  }
}

/// True where nothing but the segment under way keeps a call from being a step, which it has ended then: the call sees
/// what the segment writes, or looks at what it computes.
bool Session::can_be_a_step_of_the_next_segment(const OpTraits& traits, c10::ArrayRef<c10::IValue> arguments) {
  if (!waits_for(table_, traits.facts, arguments)) return false;
  synchronize(traits.facts.name);
  return way_of(traits, arguments, table_) == Way::later;
}

void Session::keep_what_was_matched(UndoLog& log) const {
  for (const TensorTable::Memory& memory : table_.memories()) {
    if (!memory.written || !memory.held) continue;
    const TraceMemory& known = table_.known(table_.id_of(memory));
    log.keep(table_.over(memory.held, known.root));
  }
}

void Session::begin_segment() {
  surroundings_ = KernelSurroundings::current();
  tree_ = library_->tree(surroundings_->settings);
  at_ = &tree_->root();
  recording_ = false;
}

void Session::step(const c10::OperatorHandle& op, const OpTraits& traits, c10::DispatchKeySet below,
                   torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  if (at_ != nullptr && *surroundings_ != KernelSurroundings::current()) synchronize("another stream or setting");
  if (at_ != nullptr && at_->depth > 0 && tree_->has_other_places(*at_, op)) synchronize(traits.facts.name);
  if (at_ == nullptr) {
    begin_segment();
    if (answer_known(op, stack)) return;
  }
  const bool views = views_what_is_there(traits, arguments, table_);
  if (views && tree_->has_other_integers(*at_, op)) return make_view(op, traits, below, stack);
  if (!recording_ && tree_->throws(*at_, op)) return run_what_threw(op, traits, below, stack);
  table_.begin_call();
  auto call = in_words(traits.facts, arguments, table_);
  if (!call) {
    table_.forget_added();
    if (tells_breaks_of(traits)) note_break(traits, arguments, unknown_argument(traits.facts));
    return run_now(op, traits, below, stack);
  }
  if (!recording_ && library_->grow(*tree_, *at_, op, table_.added().values, setup_.vouched)) {
    table_.forget_added();
    if (answer_known(op, stack)) return;
    table_.begin_call();
    call = in_words(traits.facts, arguments, table_);
  }
  const auto& key = call->key;
  if (at_->depth > 0 && tree_->finds_other_places(*at_, op, key, table_.added().values, takes_placed_view(arguments))) {
    table_.forget_added();
    synchronize(traits.facts.name);
    return step(op, traits, below, stack);
  }
  const auto* then = views ? tree_->find_other_integers(*at_, op, key, table_.added().values, beside_) : nullptr;
  if (then != nullptr) {
    beside_ = then;
    table_.forget_added();
    return make_view(op, traits, below, stack);
  }
  if (!library_->may_record()) {
    table_.forget_added();
    synchronize(traits.facts.name);
    off_ = true;
    account_.cut_off = true;
    return run_below(op, below, stack);
  }
  if (!recording_) {
    run_matched({});
    table_.note_arrivals();
    recording_ = true;
  }
  record(op, traits, std::move(*call), below, stack);
}

void Session::note_writes(const Step& step) {
  for (const TraceMemoryId memory : step.written) {
    table_.note_write(memory);
    if (table_.known(memory).fresh) continue;
    if (recording_) {
      account_.wrote = true;
    } else {
      closed_.close(table_.memory(memory).held);
    }
  }
}

void Session::record(const c10::OperatorHandle& op, const OpTraits& traits, CallInWords call, c10::DispatchKeySet below,
                     torch::jit::Stack* stack) {
  const runtime::Stopwatch all;
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  StepRecorder recorder(op, traits, std::move(call), arguments, table_, module_of(arguments));
  keep_what_is_written(traits.facts, arguments);
  const auto drawn_on = draws_in_step(traits.facts, arguments);
  const auto place = drawn_on ? GeneratorPlace::of(*drawn_on) : GeneratorPlace();
  const runtime::Stopwatch eager;
  try {
    run_below(op, below, stack);
  } catch (...) {
    table_.forget_added();
    tree_->note_throw(*at_, op, true);
    failed_at_ = place_of(recorder.arguments());
    throw;
  }
  const double eager_seconds = eager.seconds();
  auto step = recorder.finish(torch::jit::last(*stack, op.schema().returns().size()));
  if (!step) {
    account_.wrote = account_.wrote || !traits.facts.mutates.empty();
    library_->exclude(op);
    note_break(traits, {}, break_of(traits, {}));
    return synchronize(traits.facts.name);  // the segment ends before this operator
  }
  if (drawn_on) {
    step->draw = {.device = *drawn_on, .amount = GeneratorPlace::of(*drawn_on).drawn - place.drawn};
    account_.wrote = true;
  }
  note_writes(*step);
  ++account_.recorded;
  const auto [node, is_new] = tree_->add(*at_, std::move(*step));
  at_ = &node;
  if (beside_ != nullptr) beside_ = PathTree::first_call_of(*beside_, op);
  if (is_new) note_divergence(node);
  library_->note_recording(all.seconds() - eager_seconds);
}

std::vector<TraceMemoryId> Session::escaped() const {
  std::vector<TraceMemoryId> escaped;
  for (uint32_t i = 0; i < table_.memories().size() && i < at_->memories; ++i) {
    if (table_.known({i}).fresh && !table_.memories()[i].storage.expired()) escaped.push_back({i});
  }
  return escaped;
}

void Session::synchronize(std::string_view reason) {
  if (at_ == nullptr) return;
  try {
    if (recording_) {
      library_->note_end(*tree_, *at_, escaped(), reason);
    } else {
      run_matched(reason);
    }
  } catch (...) {
    end_segment();
    throw;
  }
  end_segment();
}

void Session::end_segment() {
  if (at_ != nullptr && at_->depth > 0) ++account_.segments;
  closed_.open();
  table_.clear();
  numbers_.clear();
  draws_.clear();
  placed_.clear();
  beside_ = nullptr;
  settings_matter_ = false;
  nodes_.clear();
  early_.reset();
  early_due_ = nothing_early;
  at_ = nullptr;
  tree_.reset();
}

void Session::run_matched(std::string_view reason) {
  closed_.open();
  if (at_->depth == 0) return;
  const c10::impl::ExcludeDispatchKeyGuard no_hook(kHookKeys);
  if (undo_ && !off_) keep_what_was_matched(*undo_);  // behind the end of the call nothing is refused
  const SurroundingsGuard segment(*surroundings_, settings_matter_);
  const auto memories = escaped();
  const PathLibrary::Matched matched{*at_, tree_, memories, numbers_, reason, table_, setup_.arguments};
  const auto path = library_->compiled(matched, news_);
  note_what_followed(path);
  {
    const DrawLog::WhileItRuns draws(draws_);
    path ? run_compiled(path, matched, draws) : interpret();
  }
  account_.wrote = account_.wrote || !draws_.empty();
  if (!draws_.empty()) refuse_in_log("it draws random numbers");
  draws_.clear();
}

void Session::run_compiled(const std::shared_ptr<CompiledPath>& path, const PathLibrary::Matched& segment,
                           const DrawLog::WhileItRuns& draws) {
  const auto give = [this](TraceMemoryId memory, at::Tensor data) {
    if (const auto storage = table_.memory(memory).storage.lock()) give_memory(*storage, std::move(data));
  };
  bool wrote = false;
  try {
    path->run(table_, numbers_, give, wrote, early_.get());
  } catch (const std::exception& error) {
    if (wrote) throw;
    draws.begin_again();
    interpret();  // throws the same where eager does, with what it writes before
    const bool may_work_later = dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr;
    if (!may_work_later) library_->note_failed_run(segment, first_line(error.what()), news_);
    return;
  }
  if (log_) log_->note_segment(path, table_, *surroundings_);
  account_.wrote = account_.wrote || wrote;
  ++account_.replayed;
}

void Session::call_whole(const c10::OperatorHandle& op, c10::DispatchKeySet below, torch::jit::Stack* stack) {
  {
    const std::lock_guard lock(mutex_);
    ++unanswered_;
    note_other(op, torch::jit::last(*stack, op.schema().arguments().size()));
    if (!off_) {
      synchronize(op.schema().name());
      account_.wrote = true;
      ++account_.at_once;
      refuse_in_log(op.schema().name() + " runs between segments");
    }
  }
  run_below(op, below, stack);
}

void Session::run_rest_at_once(std::string_view reason) {
  refuse_in_log(reason);
  synchronize(reason);
  off_ = true;
  account_.wrote = true;
  ++account_.at_once;
}

void Session::wait_for(c10::ArrayRef<c10::IValue> arguments) {
  const std::lock_guard lock(mutex_);
  ++unanswered_;
  const OpFacts nothing;
  refuse_in_log("an operator without a kernel of its own looks at data");
  if (!off_ && waits_for(table_, nothing, arguments)) synchronize("an operator without a kernel of its own");
}

void Session::wait_for_memory_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return;
  const std::lock_guard lock(mutex_);
  refuse_in_log("sinter::materialize asks for memory");
  if (!off_ && table_.memory_of(tensor) != nullptr) synchronize("sinter::materialize");
}

void Session::finish() {
  const std::lock_guard lock(mutex_);
  const c10::impl::ExcludeDispatchKeyGuard no_hook(kHookKeys);
  off_ = true;
  lent_.end();
  synchronize("the end of the call");
}

void Session::begin_again(ClosedStorages& kept) {
  const std::lock_guard lock(mutex_);
  const c10::impl::ExcludeDispatchKeyGuard no_hook(kHookKeys);
  off_ = true;
  if (at_ == nullptr) return;
  std::vector<c10::Storage> storages;
  for (const TraceMemoryId id : escaped()) storages.emplace_back(table_.memory(id).storage.lock());
  DrawLog draws = draws_;
  UndoLog writes;
  closed_.open();
  if (!recording_) keep_what_was_matched(writes);
  synchronize("the call runs again as eager");
  draws.take_back();
  writes.restore();
  for (const c10::Storage& storage : storages) kept.close(storage);
}

void Session::take_back() {
  const std::lock_guard lock(mutex_);
  off_ = true;
  draws_.take_back();
  end_segment();
  if (undo_) undo_->restore();
}

}  // namespace sinter::frontend
