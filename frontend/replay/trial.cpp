#include "frontend/replay/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/stopwatch.h"

namespace sinter::frontend {
namespace {

constexpr size_t kFewCalls = 8;        ///< of each way: enough where one of them is much faster
constexpr size_t kCalls = 24;          ///< of each way
constexpr int64_t kMostTurns = 96;     ///< where hardly a call counts
constexpr double kMuchFaster = 0.6;    ///< of the other's time
constexpr double kNoFaster = 1.02;     ///< of eager's time
constexpr int64_t kMostCalls = 65536;  ///< between two comparisons

}  // namespace

Trial::Way Trial::next() {
  const Phase phase = phase_.load(std::memory_order_acquire);
  if (phase != Phase::comparing && left_.fetch_sub(1, std::memory_order_relaxed) > 0) {
    return phase == Phase::compiled ? Way::compiled : Way::eager;
  }
  const std::lock_guard lock(mutex_);
  phase_.store(Phase::comparing, std::memory_order_release);
  if (++turns_ > kMostTurns) {
    finish(Phase::compiled);
    return Way::compiled;
  }
  // In the order of Thue and Morse: a program that does two things in turns does both of them in both ways.
  return std::popcount(static_cast<uint64_t>(turns_)) % 2 == 0 ? Way::compiled : Way::eager;
}

void Trial::note(Way way, double seconds) {
  if (phase_.load(std::memory_order_acquire) != Phase::comparing) return;
  const std::lock_guard lock(mutex_);
  if (phase_.load(std::memory_order_relaxed) != Phase::comparing) return;  // another thread has finished it
  seconds_[static_cast<size_t>(way)].push_back(seconds);
  compare();
}

void Trial::compare() {
  const size_t calls = std::min(seconds_[0].size(), seconds_[1].size());
  if (calls < kFewCalls) return;
  const double compiled = runtime::median(seconds_[0]), eager = runtime::median(seconds_[1]);
  const bool clear = compiled < kMuchFaster * eager || eager < kMuchFaster * compiled;
  if (!clear && calls < kCalls) return;
  const bool pays = compiled < kNoFaster * eager;
  finish(pays ? Phase::compiled : Phase::eager);
  if (pays) return;
  finding_ = fmt::format("left to eager, compared every {} calls: {:.4g} ms compiled, {:.4g} ms eager", between_,
                         compiled * 1e3, eager * 1e3);
}

void Trial::finish(Phase phase) {
  finding_.clear();
  between_ = std::min(between_ * 4, kMostCalls);
  for (auto& seconds : seconds_) seconds.clear();
  turns_ = 0;
  left_.store(between_, std::memory_order_relaxed);
  phase_.store(phase, std::memory_order_release);
}

std::string Trial::finding() const {
  const std::lock_guard lock(mutex_);
  return finding_;
}

}  // namespace sinter::frontend
