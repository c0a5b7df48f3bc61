#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/stopwatch.h"
#include "sinter/stats.h"

namespace sinter::frontend {

/// What Stats is read from. Thread-safe; every number is counted on its own, so that a reader may see one call in some
/// of them and not yet in others.
struct Counters {
  std::atomic<int64_t> replayed{0};
  std::atomic<int64_t> recorded{0};
  std::atomic<int64_t> eager{0};
  std::atomic<int64_t> threw{0};
  std::atomic<int64_t> entries{0};
  std::atomic<int64_t> shapes{0};
  std::atomic<int64_t> breaks{0};
  std::atomic<int64_t> recompilations{0};
  std::atomic<int64_t> compile_nanoseconds{0};

  static void add(std::atomic<int64_t>& counter, int64_t count = 1) {
    counter.fetch_add(count, std::memory_order_relaxed);
  }
  [[nodiscard]] Stats read() const;
};

/// Adds the time of its life to Counters::compile_nanoseconds.
class CompileTimer {
 public:
  explicit CompileTimer(Counters& counters) : counters_(counters) {}
  CompileTimer(const CompileTimer&) = delete;
  CompileTimer& operator=(const CompileTimer&) = delete;
  ~CompileTimer() { Counters::add(counters_.compile_nanoseconds, static_cast<int64_t>(1e9 * stopwatch_.seconds())); }

 private:
  Counters& counters_;
  runtime::Stopwatch stopwatch_;
};

}  // namespace sinter::frontend
