#pragma once

#include <bitset>
#include <cstdint>
#include <utility>
#include <vector>

namespace sinter::frontend {

/// Which sizes of a dim, from 2 on, recordings have shown: of which order of magnitude (between powers of two, lower or
/// upper half), and with which remainder by 8. Operators that choose by a size do so at a threshold or by a remainder.
class SizeCoverage {
 public:
  void add(int64_t size);
  [[nodiscard]] bool contains(int64_t size) const;

 private:
  std::bitset<128> magnitudes_;  ///< two for each number of bits
  std::bitset<8> remainders_;
};

}  // namespace sinter::frontend
