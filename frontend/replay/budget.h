#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace sinter::frontend {

/// What recording and compiling one function may cost: a share of the time that its calls have taken. The first calls
/// need not wait for that. Seconds; thread-safe.
class Budget {
 public:
  explicit Budget(double share) : share_(share) {}

  void note_call(double seconds);
  void note_recording(double seconds);
  void note_compilation(double seconds);
  /// True while more may be recorded and compiled.
  [[nodiscard]] bool allows() const;
  /// "recording and compiling took 0.12 of 3.4 s; the budget is 10 %"
  [[nodiscard]] std::string text() const;

 private:
  const double share_;
  std::atomic<int64_t> calls_{0};
  std::atomic<double> ran_{0}, spent_{0};
  std::atomic<bool> compiled_{false};
};

}  // namespace sinter::frontend
