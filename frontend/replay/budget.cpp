#include "frontend/replay/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sinter::frontend {
namespace {

constexpr int64_t kFirstCalls = 3;      ///< recorded, compiled, and compiled where the program took another branch
constexpr int64_t kCallsInSearch = 8;   ///< may be recorded until something comes twice
constexpr double kFirstSeconds = 0.05;  ///< that the first calls may spend in any case
constexpr double kHorizon = 1000;       ///< calls that a function is expected to make
constexpr double kSlow = 2;             ///< times the fastest call: what calls with something new take is not usual
constexpr double kUsualSeconds = 0.02;  ///< of a compilation, before there was one

double read(const std::atomic<double>& number) { return number.load(std::memory_order_relaxed); }

}  // namespace

bool Budget::is_first() const { return calls_.load(std::memory_order_relaxed) < kFirstCalls; }

double Budget::usual() const {
  const double ran = read(ran_), first = read(ran_first_);
  const auto calls = static_cast<double>(calls_.load(std::memory_order_relaxed));
  if (calls <= kFirstCalls) return first / std::max(calls, 1.0);
  return std::min((ran - first) / (calls - kFirstCalls), kSlow * read(fastest_));
}

double Budget::limit() const { return share_ * std::max(read(ran_), kHorizon * usual()); }

double Budget::recording_limit() const {
  const auto horizons = static_cast<double>(calls_.load(std::memory_order_relaxed)) / kHorizon;
  const double outlook = kHorizon * usual() * (1 + std::log2(std::max(horizons, 1.0)));
  return share_ * std::min(read(ran_), read(known_) + outlook);
}

double Budget::note_call(double seconds, bool did_something_new) {
  const double own = std::max(seconds - in_this_call_.exchange(0, std::memory_order_relaxed), 0.0);
  ran_.fetch_add(own, std::memory_order_relaxed);
  if (!did_something_new) known_.fetch_add(own, std::memory_order_relaxed);
  if (is_first()) {
    ran_first_.fetch_add(own, std::memory_order_relaxed);
  } else if (own < read(fastest_)) {
    fastest_.store(own, std::memory_order_relaxed);
  }
  calls_.fetch_add(1, std::memory_order_relaxed);
  return own;
}

void Budget::note(std::atomic<double>& later, double seconds) {
  (is_first() ? first_ : later).fetch_add(seconds, std::memory_order_relaxed);
  in_this_call_.fetch_add(seconds, std::memory_order_relaxed);
}

void Budget::note_recording(double seconds) { note(recorded_, seconds); }

void Budget::note_compilation(double seconds) {
  note(compiled_, seconds);
  all_compiled_.fetch_add(seconds, std::memory_order_relaxed);
  compilations_.fetch_add(1, std::memory_order_relaxed);
}

bool Budget::allows_recording() const {
  if (compilations_.load(std::memory_order_relaxed) == 0 && calls_.load(std::memory_order_relaxed) < kCallsInSearch) {
    return true;
  }
  return is_first() || (read(recorded_) <= recording_limit() && read(recorded_) + read(compiled_) <= limit());
}

bool Budget::allows_compilation(bool instance) const {
  const int64_t compilations = compilations_.load(std::memory_order_relaxed);
  if (compilations == 0 && !instance) return true;
  const double limit = this->limit();
  if (is_first()) return read(first_) <= std::max(kFirstSeconds, limit);
  const double usual = compilations == 0 ? kUsualSeconds : read(all_compiled_) / static_cast<double>(compilations);
  return read(recorded_) + read(compiled_) + usual <= limit - std::min(read(first_), limit / 2);
}

std::string Budget::text() const {
  const double first = read(first_), later = read(recorded_) + read(compiled_);
  return fmt::format(
      "recording and compiling took {:.3g} s beside {:.3g} s of calls, {:.3g} s of it for the first entry; the budget "
      "of "
      "the rest is {:.3g} %",
      first + later, read(ran_), first, 100 * share_);
}

}  // namespace sinter::frontend
