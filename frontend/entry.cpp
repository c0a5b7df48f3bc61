#include "frontend/entry.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>

#include <optional>

#include "frontend/convert.h"
#include "frontend/generator_states.h"

namespace sinter::frontend {

int64_t Entry::arrive() {
  const int64_t call = counts_->calls.fetch_add(1, std::memory_order_relaxed) + 1;
  last_call_.store(call, std::memory_order_relaxed);
  return call;
}

void Entry::join_family(std::shared_ptr<Entry> head) {
  counts_ = head->counts_;
  last_call_.store(counts_->calls.load(std::memory_order_relaxed), std::memory_order_relaxed);
  head_ = head.get();
  other_head_ = std::move(head);
}

void Entry::change_record(const std::function<void(EntryReport&)>& change) {
  const std::lock_guard lock(mutex_);
  change(record_);
}

void Entry::install(std::unique_ptr<Replayable> replayable) {
  replayable_ = std::move(replayable);
  record_.compiled = true;
  compiled_.store(true, std::memory_order_release);
}

void Entry::install(std::unique_ptr<Paths> paths) {
  paths_ = std::move(paths);
  record_.compiled = true;
  compiled_.store(true, std::memory_order_release);
}

void Entry::turn_eager(GraphBreak reason, const std::string& internal_error) {
  const std::lock_guard lock(mutex_);
  record_.breaks.push_back(std::move(reason));
  if (!internal_error.empty()) record_.internal_error = internal_error;
  record_.compiled = false;
  compiled_.store(false, std::memory_order_release);
}

bool Entry::replay(const detail::Flat& arguments, detail::Replay& replay) {
  const auto& work = *replayable_;
  const c10::NoGradGuard no_grad;  // views of state among the results have no history
  std::optional<detail::Flat> extended;
  if (!work.trace.gradients.empty()) extended = with_gradients(arguments, work.trace.gradients);
  const auto& inputs = extended ? *extended : arguments;
  work.optimizers->fill(work.trace.contents);
  const FrameLease frame(frames_, *work.host);
  const c10::OptionalDeviceGuard device(device_to_set(*work.plan));
  if (!frame->bind_arguments(inputs.tensors, work.trace.states, work.trace.contents)) return false;
  GeneratorStates generators(work.generators);
  try {
    work.executable->run(*frame);
  } catch (const InternalError& error) {
    if (frame->writing()) throw HalfWritten(error);
    generators.rewind();
    throw;
  } catch (const std::exception&) {
    // Nothing was written yet: eager throws the same, with what it writes and draws before.
    const bool has_effects = !work.plan->written.empty() || !work.generators.empty();
    if (!has_effects || frame->writing()) throw;
    generators.rewind();
    return false;
  }
  note_writes(*work.plan, inputs.tensors, work.trace.states);
  work.outputs.collect(*frame, inputs, work.trace.states, replay);
  assign_gradients(work.trace.gradients, arguments, replay);
  work.optimizers->advance();
  replay.structure = work.structure;
  count_replay();
  return true;
}

void Entry::add_verification(Verification verification) {
  if (other_head_ != nullptr) return other_head_->add_verification(std::move(verification));
  const std::lock_guard lock(mutex_);
  record_.verifications.push_back(std::move(verification));
}

EntryReport Entry::report() const {
  const std::lock_guard lock(mutex_);
  auto report = record_;
  report.replays = counts_->replays.load(std::memory_order_relaxed);
  report.eager_calls = counts_->eager.load(std::memory_order_relaxed);
  if (paths_ != nullptr) paths_->add_to(report);
  return report;
}

int64_t Entry::graphs() const {
  const std::lock_guard lock(mutex_);
  return record_.graphs;
}

bool Entry::may_be_setup() const {
  if (second_try_) return false;
  const auto reason = first_break();
  return reason && reason->code == BreakCode::state_mutation;
}

std::optional<GraphBreak> Entry::first_break() const {
  const std::lock_guard lock(mutex_);
  if (record_.breaks.empty()) return std::nullopt;
  return record_.breaks.front();
}

}  // namespace sinter::frontend
