#pragma once

#include <algorithm>
#include <chrono>
#include <iterator>
#include <vector>

namespace sinter::runtime {

/// Seconds since it was made.
class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Of at least one time; of an even number of them, the upper one of the two in the middle.
[[nodiscard]] inline double median(std::vector<double> times) {
  const auto middle = times.begin() + std::ssize(times) / 2;
  std::ranges::nth_element(times, middle);
  return *middle;
}

}  // namespace sinter::runtime
