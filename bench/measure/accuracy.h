#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace sinter::bench {

/// How far compiled results are from float64, beside how far eager's are.
struct Accuracy {
  double max_error = 0;  ///< largest absolute error of the compiled results
  double rms_error = 0;  ///< root of the mean squared error
  double eager_max_error = 0;
  double eager_rms_error = 0;
  double max_allowed = 0;  ///< twice eager's, or torch.testing's tolerance for the dtype where that is larger
  double rms_allowed = 0;
  bool ok = false;  ///< within both bounds, and nan and the same infinity stand where they stand in eager
};

/// All tensors of one result against eager's and against float64. Errors are those of elements that are finite in
/// eager; where float64 is not finite there, eager is the measure. Real and imaginary parts count as elements.
[[nodiscard]] Accuracy compare(const at::Tensor& compiled, const at::Tensor& eager, const at::Tensor& float64);

/// True where two tensors of the same sizes are nan, plus infinity and minus infinity in the same places.
[[nodiscard]] bool same_special_values(const at::Tensor& a, const at::Tensor& b);

/// How far `result` is from `expected` in each element, in float64: 0 where both are nan or the same infinity, infinite
/// where only one of them is. Of complex numbers, the larger of both parts' distances.
[[nodiscard]] at::Tensor distances(const at::Tensor& result, const at::Tensor& expected);

/// The largest finite magnitude of any element; 0 where there is none.
[[nodiscard]] double largest_finite(const at::Tensor& tensor);

}  // namespace sinter::bench
