#include "frontend/compare.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>

namespace sinter::frontend {
namespace {

double tolerance(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
    case at::kComplexDouble:
      return 1e-9;
    case at::kHalf:
      return 1e-2;
    case at::kBFloat16:
      return 5e-2;
    default:
      return 1e-3;
  }
}

double length_of(const at::Tensor& tensor) { return at::linalg_vector_norm(tensor).item<double>(); }

/// The same numbers in float64; of complex ones, both parts.
at::Tensor as_float64(const at::Tensor& tensor) {
  if (!tensor.is_complex()) return tensor.to(at::kDouble);
  return at::view_as_real(tensor.to(at::kComplexDouble).resolve_conj());
}

/// What is no finite number, as it is, and zero for the rest.
at::Tensor special(const at::Tensor& tensor, const at::Tensor& finite, const at::Tensor& zero) {
  return at::where(at::logical_or(finite, at::isnan(tensor)), zero, tensor);
}

std::optional<std::string> difference(const at::Tensor& eager, const at::Tensor& compiled) {
  if (eager.scalar_type() != compiled.scalar_type()) return "another dtype";
  if (eager.sizes() != compiled.sizes()) return "other sizes";
  if (eager.numel() == 0) return std::nullopt;
  if (!eager.is_floating_point() && !eager.is_complex()) {
    return at::equal(eager, compiled) ? std::nullopt : std::optional<std::string>("other values");
  }
  const auto wide = as_float64(eager);
  const auto other = as_float64(compiled);
  const auto finite = at::isfinite(wide);
  const auto zero = at::zeros_like(wide);
  if (!at::equal(at::isnan(wide), at::isnan(other)) ||
      !at::equal(special(wide, finite, zero), special(other, at::isfinite(other), zero))) {
    return "infinities or nans in other places";
  }
  const auto error = length_of(at::where(finite, at::sub(wide, other), zero));
  const auto size = length_of(at::where(finite, wide, zero));
  if (error <= tolerance(eager.scalar_type()) * size + 1e-12) return std::nullopt;
  return fmt::format("an error of {:.3g} against a norm of {:.3g}", error, size);
}

}  // namespace

std::optional<std::string> result_difference(std::span<const at::Tensor> eager, std::span<const at::Tensor> compiled) {
  if (eager.size() != compiled.size()) return "another number of results";
  const c10::NoGradGuard no_grad;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  for (size_t i = 0; i < eager.size(); ++i) {
    if (auto text = difference(eager[i], compiled[i])) return fmt::format("result {}: {}", i, *text);
  }
  return std::nullopt;
}

}  // namespace sinter::frontend
