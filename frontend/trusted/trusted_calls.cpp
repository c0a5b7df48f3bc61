#include "frontend/trusted/trusted_calls.h"

#include <fmt/format.h>

#include <algorithm>

namespace sinter::frontend {

GivenArguments::GivenArguments(const detail::Flat& arguments) : structure_(arguments.structure) {
  for (const at::Tensor* tensor : arguments.tensors) tensors_.push_back(*tensor);
}

bool GivenArguments::are(const detail::Flat& left) const {
  const auto is_same = [](const at::Tensor& a, const at::Tensor* b) { return a.is_same(*b); };
  return left.structure == structure_ && std::ranges::equal(tensors_, left.tensors, is_same);
}

bool TrustedCalls::answer(const detail::Flat& arguments, detail::Replay& replay) {
  const auto calls = calls_.load(std::memory_order_acquire);
  if (calls->empty()) return false;
  const Modes modes = Modes::current();
  for (const auto& call : *calls) {
    if (!call->is_for(arguments, modes)) continue;
    if (!call->state_holds()) {
      drop(call.get());
      return false;
    }
    if (!call->run(arguments, replay)) return false;
    replay.owner = call;
    answered_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  return false;
}

void TrustedCalls::note(const detail::Flat& arguments, const Modes& modes, const CallLog& log,
                        const detail::Flat& result) {
  auto made = TrustedCall::of(arguments, modes, log, result);
  const std::lock_guard lock(mutex_);
  if (const auto* reason = std::get_if<std::string>(&made)) return add_refusal(*reason);
  std::shared_ptr<const TrustedCall> call = std::get<std::shared_ptr<TrustedCall>>(std::move(made));
  const auto known =
      std::ranges::find_if(candidates_, [&](const auto& candidate) { return candidate->is_for(arguments, modes); });
  if (known == candidates_.end()) {
    if (candidates_.size() == max_calls) candidates_.erase(candidates_.begin());
    candidates_.push_back(std::move(call));
    return;
  }
  if (call->does_what(**known)) {
    candidates_.erase(known);
    publish(std::move(call));
    differed_.store(0, std::memory_order_relaxed);
    return;
  }
  *known = std::move(call);
  add_refusal("two calls with the same arguments did different things, or used other tensors");
}

void TrustedCalls::refuse(std::string reason) {
  const std::lock_guard lock(mutex_);
  add_refusal(std::move(reason));
}

/// Under the lock.
void TrustedCalls::add_refusal(std::string reason) {
  refusal_ = std::move(reason);
  differed_.fetch_add(1, std::memory_order_relaxed);
}

void TrustedCalls::forget(const detail::Flat& arguments, const Modes& modes) {
  const std::lock_guard lock(mutex_);
  std::erase_if(candidates_, [&](const auto& candidate) { return candidate->is_for(arguments, modes); });
}

/// Under the lock.
void TrustedCalls::publish(std::shared_ptr<const TrustedCall> call) {
  auto calls = std::make_shared<Calls>(*calls_.load(std::memory_order_relaxed));
  if (calls->size() == max_calls) calls->erase(calls->begin());
  calls->push_back(std::move(call));
  calls_.store(std::move(calls), std::memory_order_release);
}

void TrustedCalls::drop(const TrustedCall* call) {
  const std::lock_guard lock(mutex_);
  auto calls = std::make_shared<Calls>(*calls_.load(std::memory_order_relaxed));
  std::erase_if(*calls, [&](const auto& known) { return known.get() == call; });
  calls_.store(std::move(calls), std::memory_order_release);
}

std::string TrustedCalls::text() const {
  const std::lock_guard lock(mutex_);
  const auto calls = calls_.load(std::memory_order_relaxed);
  std::string text = fmt::format(
      "trusted: {} calls ran without the callable's host code; {} combinations of arguments "
      "are known",
      answered_.load(std::memory_order_relaxed), calls->size());
  if (!refusal_.empty()) text += "; not all are, because " + refusal_;
  return text;
}

}  // namespace sinter::frontend
