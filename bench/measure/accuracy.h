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
  bool ok = false;  ///< within both bounds, and the same elements are nan or infinite as in eager
};

/// All tensors of one result against eager's and against float64.
[[nodiscard]] Accuracy compare(const at::Tensor& compiled, const at::Tensor& eager, const at::Tensor& float64);

}  // namespace sinter::bench
