#pragma once

#include <array>
#include <string>
#include <vector>

#include "ops_torch.h"

namespace sinter::test {

/// The tensors a batch of calls draws its arguments from, by position.
enum class Operand : uint8_t {
  first,       ///< every special value along dim 0
  second,      ///< every special value along dim 1: with `first`, every pair of them
  third,       ///< special values in another order
  divisor,     ///< like `second`; for integers without 0 and -1, where division throws or is undefined
  shift,       ///< like `second`
  small,       ///< values that every dtype holds, for conversions
  mask,        ///< bools
  single,      ///< 0-dim
  other_kind,  ///< like `second`, of another dtype: the operands have to be promoted
};
inline constexpr size_t operand_count = 9;

/// How operands lie in memory and how their sizes relate.
enum class Layout : uint8_t {
  contiguous,
  cancelling,  ///< contiguous; floats beside each other, beside 1 and beside a half, near and far from zero
  transposed,
  broadcast,
  zero_dim,
  empty
};
inline constexpr std::array layouts{Layout::contiguous, Layout::cancelling, Layout::transposed,
                                    Layout::broadcast,  Layout::zero_dim,   Layout::empty};
[[nodiscard]] std::string name(Layout layout);

/// All operands of one dtype and layout, indexed by Operand.
[[nodiscard]] std::vector<at::Tensor> operands(at::ScalarType dtype, Layout layout, c10::Device device);

/// Zeros of both signs, infinities, NaN, denormals and limits of a float dtype; the extremes of an integer dtype.
[[nodiscard]] std::vector<double> special_floats(at::ScalarType dtype);
[[nodiscard]] std::vector<int64_t> special_integers(at::ScalarType dtype);

}  // namespace sinter::test
