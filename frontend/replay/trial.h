#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace sinter::frontend {

/// Compares, now and then, compiled calls of a function with calls as eager runs them, and leaves it to eager for a
/// while where compiling does not pay: tiny operators between host reads. For functions whose work is done when a call
/// ends, as it is on the CPU. Thread-safe.
class Trial {
 public:
  enum class Way : uint8_t { compiled, eager };

  /// The way that the next call goes.
  [[nodiscard]] Way next();
  /// A call has gone this way in so many seconds, without what it recorded and compiled.
  void note(Way way, double seconds);
  /// What the last comparison found, where the function was left to eager; or empty.
  [[nodiscard]] std::string finding() const;

 private:
  enum class Phase : uint8_t { compiled, comparing, eager };

  static constexpr int64_t kFirst = 16;  ///< compiled calls before the first comparison

  void compare();
  void finish(Phase phase);

  std::atomic<Phase> phase_{Phase::compiled};
  std::atomic<int64_t> left_{kFirst};  ///< calls until they are compared (again)
  mutable std::mutex mutex_;           ///< of what follows
  int64_t between_ = kFirst;           ///< comparisons lie so many calls apart
  int64_t turns_ = 0;
  std::array<std::vector<double>, 2> seconds_;
  std::string finding_;
};

}  // namespace sinter::frontend
