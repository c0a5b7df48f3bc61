#pragma once

#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <random>
#include <vector>

namespace sinter::test::fuzz {

/// Draws for one program.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed * 0x9e3779b97f4a7c15ULL + 1) {}

  [[nodiscard]] int64_t below(int64_t end) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(end)); }
  [[nodiscard]] bool percent(int64_t chance) { return below(100) < chance; }
  template <class T>
  [[nodiscard]] T among(std::initializer_list<T> choices) {
    return choices.begin()[below(static_cast<int64_t>(choices.size()))];
  }
  template <class T>
  [[nodiscard]] const T& among(const std::vector<T>& choices) {
    return choices[below(static_cast<int64_t>(choices.size()))];
  }
  /// The index of a weight.
  [[nodiscard]] size_t weighted(const std::vector<int64_t>& weights) {
    int64_t left = below(std::accumulate(weights.begin(), weights.end(), int64_t{0}));
    size_t index = 0;
    while (left >= weights[index]) left -= weights[index++];
    return index;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace sinter::test::fuzz
