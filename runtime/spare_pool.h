#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

namespace sinter::runtime {

/// Objects kept for their next user, so that making one is not paid on every call. Thread-safe and lock-free; what
/// finds no place is destroyed.
template <class T, size_t Places>
class SparePool {
 public:
  SparePool() = default;
  SparePool(const SparePool&) = delete;
  SparePool& operator=(const SparePool&) = delete;
  ~SparePool() {
    for (auto& place : places_) delete place.load(std::memory_order_acquire);
  }

  /// One of those kept; null where there is none. What its last user wrote to it is seen.
  [[nodiscard]] std::unique_ptr<T> take() {
    for (auto& place : places_) {
      if (place.load(std::memory_order_relaxed) == nullptr) continue;
      if (auto* spare = place.exchange(nullptr, std::memory_order_acquire)) return std::unique_ptr<T>(spare);
    }
    return nullptr;
  }

  void give(std::unique_ptr<T> spare) {
    for (auto& place : places_) {
      T* nothing = nullptr;
      if (!place.compare_exchange_strong(nothing, spare.get(), std::memory_order_release, std::memory_order_relaxed)) {
        continue;
      }
      spare.release();  // NOLINT(bugprone-unused-return-value): the place owns it now
      return;
    }
  }

 private:
  std::array<std::atomic<T*>, Places> places_{};
};

}  // namespace sinter::runtime
