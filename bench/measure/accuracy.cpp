#include "bench/measure/accuracy.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/TensorBody.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

namespace sinter::bench {
namespace {

struct Tolerance {
  double relative;
  double absolute;
};

/// The defaults of torch.testing.assert_close.
Tolerance tolerance_of(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Half:
      return {1e-3, 1e-5};
    case c10::ScalarType::BFloat16:
      return {1.6e-2, 1e-5};
    case c10::ScalarType::Float:
      return {1.3e-6, 1e-5};
    case c10::ScalarType::Double:
      return {1e-7, 1e-7};
    default:
      return {0, 0};
  }
}

double max_of(const at::Tensor& tensor) { return tensor.numel() == 0 ? 0 : tensor.abs().max().item<double>(); }
double rms_of(const at::Tensor& tensor) {
  return tensor.numel() == 0 ? 0 : std::sqrt(tensor.square().mean().item<double>());
}

}  // namespace

Accuracy compare(const at::Tensor& compiled, const at::Tensor& eager, const at::Tensor& float64) {
  const at::Tensor reference = float64.to(at::kDouble);
  const at::Tensor finite = at::isfinite(eager);
  auto error = [&](const at::Tensor& result) {
    return at::where(finite, result.to(at::kDouble) - reference, at::zeros_like(reference));
  };
  const at::Tensor compiled_error = error(compiled);
  const at::Tensor eager_error = error(eager);
  const at::Tensor shown = at::where(finite, reference, at::zeros_like(reference));
  const Tolerance tolerance = tolerance_of(eager.scalar_type());

  Accuracy result;
  result.max_error = max_of(compiled_error);
  result.rms_error = rms_of(compiled_error);
  result.eager_max_error = max_of(eager_error);
  result.eager_rms_error = rms_of(eager_error);
  result.max_allowed = std::max(2 * result.eager_max_error, tolerance.absolute + tolerance.relative * max_of(shown));
  result.rms_allowed = std::max(2 * result.eager_rms_error, tolerance.absolute + tolerance.relative * rms_of(shown));
  const bool same_kind = at::isfinite(compiled).equal(finite) && compiled.scalar_type() == eager.scalar_type() &&
                         compiled.sizes() == eager.sizes();
  result.ok = same_kind && result.max_error <= result.max_allowed && result.rms_error <= result.rms_allowed;
  return result;
}

}  // namespace sinter::bench
