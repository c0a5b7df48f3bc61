#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace sinter::frontend {

/// What recording and compiling one function may cost: together a share of the time that its calls have taken or 1,000
/// of them would take, recording of what they have taken. What its first calls need is its first entry, and at most
/// half of it is counted. Seconds; thread-safe.
class Budget {
 public:
  explicit Budget(double share) : share_(share) {}

  /// A call is over that took so long, what it recorded and compiled included. How long it took without that.
  double note_call(double seconds);
  void note_recording(double seconds);
  void note_compilation(double seconds);
  /// True while more may be recorded.
  [[nodiscard]] bool allows_recording() const;
  /// True while one more segment may be compiled, if that takes as long as others took. An `instance` was not recorded
  /// itself, but follows from recordings for other sizes: it is no part of the first entry.
  [[nodiscard]] bool allows_compilation(bool instance) const;
  /// A sentence for the report.
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] bool is_first() const;
  [[nodiscard]] double limit() const;
  void note(std::atomic<double>& later, double seconds);

  const double share_;
  std::atomic<int64_t> calls_{0}, compilations_{0};
  std::atomic<double> ran_{0}, ran_first_{0};      ///< without what was recorded and compiled; in the first calls
  std::atomic<double> first_{0};                   ///< in the first calls
  std::atomic<double> recorded_{0}, compiled_{0};  ///< later
  std::atomic<double> all_compiled_{0};            ///< by all compilations
  std::atomic<double> in_this_call_{0};            ///< since the last call was over
};

}  // namespace sinter::frontend
