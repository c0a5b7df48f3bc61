#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>

namespace sinter::frontend {

/// What recording and compiling one function may cost: together a share of the time that its calls have taken or 1,000
/// of them would take. Recording takes it of what calls have taken that did nothing new, and of 1,000 others; of as
/// many again when their number has doubled. What the first calls need is the first entry, and at most half of it is
/// counted. Seconds; thread-safe.
class Budget {
 public:
  explicit Budget(double share) : share_(share) {}

  /// A call is over that took so long, what it recorded and compiled included. How long it took without that.
  double note_call(double seconds, bool did_something_new);
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
  [[nodiscard]] double usual() const;  ///< time of a call
  [[nodiscard]] double limit() const;
  [[nodiscard]] double recording_limit() const;
  void note(std::atomic<double>& later, double seconds);

  const double share_;
  std::atomic<int64_t> calls_{0}, compilations_{0};
  std::atomic<double> ran_{0}, ran_first_{0};  ///< without what was recorded and compiled; in the first calls
  std::atomic<double> known_{0};               ///< of that, in calls that did nothing new
  std::atomic<double> fastest_{std::numeric_limits<double>::infinity()};  ///< call behind the first ones, likewise
  std::atomic<double> first_{0};                                          ///< in the first calls
  std::atomic<double> recorded_{0}, compiled_{0};                         ///< later
  std::atomic<double> all_compiled_{0};                                   ///< by all compilations
  std::atomic<double> in_this_call_{0};                                   ///< since the last call was over
};

}  // namespace sinter::frontend
