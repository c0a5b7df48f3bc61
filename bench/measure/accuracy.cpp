#include "bench/measure/accuracy.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/TensorBody.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>

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
    case c10::ScalarType::ComplexHalf:
      return {1e-3, 1e-5};
    case c10::ScalarType::BFloat16:
      return {1.6e-2, 1e-5};
    case c10::ScalarType::Float:
    case c10::ScalarType::ComplexFloat:
      return {1.3e-6, 1e-5};
    case c10::ScalarType::Double:
    case c10::ScalarType::ComplexDouble:
      return {1e-7, 1e-7};
    default:
      return {0, 0};
  }
}

double max_of(const at::Tensor& tensor) { return tensor.numel() == 0 ? 0 : tensor.abs().max().item<double>(); }
double rms_of(const at::Tensor& tensor) {
  return tensor.numel() == 0 ? 0 : std::sqrt(tensor.square().mean().item<double>());
}

/// The same numbers in float64; of complex ones, both parts in a last dim of two.
at::Tensor as_float64(const at::Tensor& tensor) {
  if (!tensor.is_complex()) return tensor.to(at::kDouble);
  return at::view_as_real(tensor.to(at::kComplexDouble).resolve_conj());
}

at::Tensor finite_or(const at::Tensor& values, const at::Tensor& otherwise) {
  return at::where(at::isfinite(values), values, otherwise);
}

bool same_special(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor zero = at::zeros_like(a);
  const bool same_nans = at::isnan(a).equal(at::isnan(b));
  const auto infinities = [&](const at::Tensor& x) { return at::where(at::isfinite(x) | at::isnan(x), zero, x); };
  return same_nans && infinities(a).equal(infinities(b));
}

}  // namespace

bool same_special_values(const at::Tensor& a, const at::Tensor& b) {
  return same_special(as_float64(a), as_float64(b));
}

at::Tensor distances(const at::Tensor& result, const at::Tensor& expected) {
  const at::Tensor a = as_float64(result);
  const at::Tensor b = as_float64(expected);
  const at::Tensor zero = at::zeros_like(a);
  const at::Tensor far = zero + std::numeric_limits<double>::infinity();
  const at::Tensor same = (a == b) | (at::isnan(a) & at::isnan(b));
  const at::Tensor both_finite = at::isfinite(a) & at::isfinite(b);
  const at::Tensor distance = at::where(same, zero, at::where(both_finite, (a - b).abs(), far));
  return result.is_complex() && distance.numel() > 0 ? distance.amax(-1) : distance;
}

double largest_finite(const at::Tensor& tensor) {
  const at::Tensor values = as_float64(tensor);
  return max_of(finite_or(values, at::zeros_like(values)));
}

Accuracy compare(const at::Tensor& compiled, const at::Tensor& eager, const at::Tensor& float64) {
  if (compiled.scalar_type() != eager.scalar_type() || compiled.sizes() != eager.sizes()) return {};
  const at::Tensor given = as_float64(compiled);
  const at::Tensor computed = as_float64(eager);
  const bool comparable = float64.sizes() == eager.sizes() && float64.is_complex() == eager.is_complex();
  const at::Tensor reference = comparable ? finite_or(as_float64(float64), computed) : computed;
  const at::Tensor finite = at::isfinite(computed);
  const at::Tensor zero = at::zeros_like(computed);
  const auto error = [&](const at::Tensor& result) {
    return at::where(finite & at::isfinite(result), result - reference, zero);
  };
  const at::Tensor compiled_error = error(given);
  const at::Tensor eager_error = error(computed);
  const at::Tensor shown = at::where(finite, reference, zero);
  const Tolerance tolerance = tolerance_of(eager.scalar_type());

  Accuracy result;
  result.max_error = max_of(compiled_error);
  result.rms_error = rms_of(compiled_error);
  result.eager_max_error = max_of(eager_error);
  result.eager_rms_error = rms_of(eager_error);
  result.max_allowed = std::max(2 * result.eager_max_error, tolerance.absolute + tolerance.relative * max_of(shown));
  result.rms_allowed = std::max(2 * result.eager_rms_error, tolerance.absolute + tolerance.relative * rms_of(shown));
  result.ok =
      same_special(given, computed) && result.max_error <= result.max_allowed && result.rms_error <= result.rms_allowed;
  return result;
}

}  // namespace sinter::bench
