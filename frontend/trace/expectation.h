#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace sinter::frontend {

class CompiledPath;

/// The compiled segment that is expected behind the first step of one: the last that began with it. Thread-safe.
class Expectation {
 public:
  /// Null where there is none, or where too many were in vain.
  [[nodiscard]] std::shared_ptr<CompiledPath> path() const;
  /// A segment that began here was this one; null where it was not compiled.
  void note(const std::shared_ptr<CompiledPath>& path);

 private:
  static constexpr int64_t right_for_each_wrong = 8;

  std::atomic<std::weak_ptr<CompiledPath>> path_{};
  std::atomic<int64_t> right_{0}, wrong_{0};
};

}  // namespace sinter::frontend
