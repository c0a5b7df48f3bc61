#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace sinter::codegen {

/// The numbers of a kernel's text that the sizes of its tensors decide: extents, strides, divisors. They stand in the
/// text itself, or, in a generic text, are parameters: then kernels that differ in sizes alone have one text. What is 0
/// or 1 decides how a text is built and is never a parameter, but for counts. Equal numbers are parameters of their
/// own, as they need not be equal under other sizes.
class Sizes {
 public:
  explicit Sizes(bool generic) : generic_(generic) {}

  [[nodiscard]] bool generic() const { return generic_; }
  /// The parameter that holds the number; nothing where the text does.
  [[nodiscard]] std::optional<size_t> parameter(int64_t number) {
    if (number == 0 || number == 1) return std::nullopt;
    return count(number);
  }
  /// The same for a number of points or turns, which may well be 0 or 1.
  [[nodiscard]] std::optional<size_t> count(int64_t number) {
    if (!generic_) return std::nullopt;
    values_.push_back(number);
    return values_.size() - 1;
  }
  /// What the parameters are to hold.
  [[nodiscard]] const std::vector<int64_t>& values() const { return values_; }

 private:
  bool generic_;
  std::vector<int64_t> values_;
};

}  // namespace sinter::codegen
