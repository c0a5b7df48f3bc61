#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace sinter::frontend {

/// What recording and compiling one function may cost: a share of the time that its calls have taken, or would take in
/// 1,000 calls. What its first calls need is its first entry, and is not counted. Seconds; thread-safe.
class Budget {
 public:
  explicit Budget(double share) : share_(share) {}

  /// A call is over that took so long, what it recorded and compiled included.
  void note_call(double seconds);
  void note_recording(double seconds);
  void note_compilation(double seconds);
  /// True while more may be recorded.
  [[nodiscard]] bool allows_recording() const;
  /// True while one more segment may be compiled, if that takes as long as others took.
  [[nodiscard]] bool allows_compilation() const;
  /// A sentence for the report.
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] bool is_first() const;
  [[nodiscard]] double limit() const;
  void note(double seconds);

  const double share_;
  std::atomic<int64_t> calls_{0}, compilations_{0};
  std::atomic<double> ran_{0};               ///< without what was recorded and compiled
  std::atomic<double> first_{0}, spent_{0};  ///< in the first calls, and later
  std::atomic<double> compiled_{0};          ///< of both, by compilations
  std::atomic<double> in_this_call_{0};      ///< of both, since the last call was over
};

}  // namespace sinter::frontend
