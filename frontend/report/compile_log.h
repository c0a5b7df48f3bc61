#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "sinter/compile_times.h"

namespace sinter::frontend {

/// What compiling took: its newest events, and the sums of all. Its memory is bounded: events make room by age, and
/// functions beyond the first ones are summed up as one. Thread-safe.
class CompileLog {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr size_t usual_events = 16384, usual_functions = 256;

  explicit CompileLog(size_t most_events = usual_events, size_t most_functions = usual_functions);

  /// That of this process, which sinter::compile_times() reads; never destroyed.
  static CompileLog& of_process();

  /// The number of the entry of this function that begins now.
  [[nodiscard]] int64_t next_entry(const std::string& function);
  /// Adds what is over, its start as `seconds_at` gives it.
  void add(std::vector<CompileEvent> events);
  /// Adds what recording took of a call that began then and ends now, in seconds.
  void add_call(const std::string& function, Time begin, double seconds);

  /// Seconds from the time at which events start to count.
  [[nodiscard]] double seconds_at(Time time) const;
  [[nodiscard]] CompileTimes snapshot() const;

 private:
  struct Sums {
    std::string name;
    int64_t entries = 0;
    size_t kernels = none;  ///< the position of its row
    static constexpr size_t none = ~size_t{0};
  };

  Sums& sums_of(const std::string& function);
  void count(const CompileEvent& event);
  void count(const std::string& function, const std::string& phase, double seconds);
  void keep(CompileEvent event);

  const size_t most_events_, most_functions_;
  const Time started_;
  mutable std::mutex mutex_;  ///< of what follows
  CompileTimes times_;        ///< without events
  std::unordered_map<std::string, Sums> functions_;
  std::map<std::pair<std::string, std::string>, size_t> rows_;  ///< by function and phase
  std::deque<CompileEvent> events_;
};

/// The system's number of the calling thread.
[[nodiscard]] int64_t this_thread();

}  // namespace sinter::frontend
