#include "frontend/replay/budget.h"

#include <fmt/format.h>

namespace sinter::frontend {
namespace {

constexpr int64_t kFirstCalls = 3;      ///< recorded, compiled, and compiled where the program took another branch
constexpr int64_t kCallsInSearch = 8;   ///< may be recorded until something comes twice
constexpr double kFirstSeconds = 0.05;  ///< that the first calls may spend in any case,
constexpr double kFirstShare = 10;      ///< or this much of what they have run

}  // namespace

void Budget::note_call(double seconds) {
  calls_.fetch_add(1, std::memory_order_relaxed);
  ran_.fetch_add(seconds, std::memory_order_relaxed);
}

void Budget::note_recording(double seconds) { spent_.fetch_add(seconds, std::memory_order_relaxed); }

void Budget::note_compilation(double seconds) {
  spent_.fetch_add(seconds, std::memory_order_relaxed);
  compiled_.store(true, std::memory_order_relaxed);
}

bool Budget::allows() const {
  const int64_t calls = calls_.load(std::memory_order_relaxed);
  const double spent = spent_.load(std::memory_order_relaxed), ran = ran_.load(std::memory_order_relaxed);
  if (!compiled_.load(std::memory_order_relaxed)) return calls < kCallsInSearch || spent <= share_ * ran;
  const bool among_first = calls < kFirstCalls && (spent <= kFirstSeconds || spent <= kFirstShare * ran);
  return among_first || spent <= share_ * ran;
}

std::string Budget::text() const {
  return fmt::format("recording and compiling took {:.3g} of {:.3g} s; the budget is {:.3g} %",
                     spent_.load(std::memory_order_relaxed), ran_.load(std::memory_order_relaxed), 100 * share_);
}

}  // namespace sinter::frontend
