#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "frontend/trace/path_tree.h"

namespace sinter::frontend {

/// What a whole number of a recorded step says.
struct StepNumberPlace {
  enum class Kind : uint8_t {
    argument,  ///< of the call
    input,     ///< a size of a tensor that no step made: `value` is its position among those taken, `dim` the dim
    given,     ///< any other size, stride or place of a tensor that no step made
    layout,    ///< a size or stride of a result
    place,     ///< where a result begins
    bytes,     ///< how large a memory is
  };
  Kind kind = Kind::argument;
  uint32_t value = 0, dim = 0;
};

/// The whole numbers of a step that sizes may decide, in an order of their own.
using StepNumbers = std::vector<int64_t>;
[[nodiscard]] StepNumbers whole_numbers_of(const Step& step);
[[nodiscard]] std::vector<StepNumberPlace> number_places(const Step& step);
/// The step with other whole numbers, as many as it has.
[[nodiscard]] Step with_numbers(const Step& step, std::span<const int64_t> numbers);

/// True where two calls differ in whole numbers among their arguments, and in nothing else.
[[nodiscard]] bool differ_in_integers_only(const CallKey& a, const CallKey& b);

/// True where they differ in whole numbers, whatever tensors they take.
[[nodiscard]] bool differ_in_integers(const CallKey& a, const CallKey& b);

/// True where two steps are one but for whole numbers and for numbers that a kernel can take on every call. Those that
/// differ are set in `live`.
[[nodiscard]] bool differ_in_numbers_only(const Step& a, const Step& b, uint64_t& live);

}  // namespace sinter::frontend
