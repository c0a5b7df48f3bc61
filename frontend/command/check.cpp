#include <ATen/TensorOperators.h>
#include <ATen/core/TensorBody.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/isfinite.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/support/errors.h"
#include "frontend/command/commands.h"

namespace sinter::command {
namespace {

/// Saved results that eager itself is further from than this part of their size are those of another model or input.
double largest_relative_error(at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf:
      return 5e-2;
    case at::kBFloat16:
      return 2e-1;
    case at::kDouble:
      return 1e-6;
    default:
      return 1e-3;
  }
}

/// Where two tensors differ most: "[0, 17]".
std::string place_of_largest(const at::Tensor& result, const at::Tensor& expected) {
  if (result.numel() == 0) return "[]";
  int64_t flat = (result.to(at::kDouble) - expected.to(at::kDouble)).abs().argmax().item<int64_t>();
  std::vector<int64_t> place(static_cast<size_t>(result.dim()));
  for (size_t d = place.size(); d-- > 0;) {
    place[d] = flat % result.size(static_cast<int64_t>(d));
    flat /= result.size(static_cast<int64_t>(d));
  }
  return fmt::format("[{}]", fmt::join(place, ", "));
}

struct Checked {
  bench::Accuracy accuracy;
  double size = 0;  ///< largest of what was expected
};

/// What was saved is rounded as eager's result is: where `exact` (wider; may be undefined) tells how far eager is
/// from the truth, a result may be twice as far from the truth, and what was saved as far on the other side.
void allow_for_rounding(bench::Accuracy& accuracy, const at::Tensor& result, const at::Tensor& eager,
                        const at::Tensor& exact) {
  if (!exact.defined() || exact.sizes() != eager.sizes() || !eager.is_floating_point()) return;
  const bench::Accuracy rounding = bench::compare(eager, eager, exact);
  accuracy.max_allowed = std::max(accuracy.max_allowed, 3 * rounding.max_error);
  accuracy.rms_allowed = std::max(accuracy.rms_allowed, 3 * rounding.rms_error);
  const bool same_kind = result.scalar_type() == eager.scalar_type() && at::isfinite(eager).all().item<bool>() &&
                         at::isfinite(result).all().item<bool>();
  accuracy.ok = accuracy.ok ||
                (same_kind && accuracy.max_error <= accuracy.max_allowed && accuracy.rms_error <= accuracy.rms_allowed);
}

Checked check_tensor(const at::Tensor& result, const at::Tensor& eager, const at::Tensor& exact,
                     const at::Tensor& expected) {
  Checked checked{.accuracy = bench::compare(result, eager, expected)};
  allow_for_rounding(checked.accuracy, result, eager, exact);
  if (expected.numel() > 0) checked.size = expected.to(at::kDouble).abs().max().item<double>();
  const bool same_inputs =
      checked.accuracy.eager_max_error <= largest_relative_error(eager.scalar_type()) * std::max(checked.size, 1.0);
  checked.accuracy.ok = checked.accuracy.ok && same_inputs;
  return checked;
}

}  // namespace

int check_against(const std::string& file, const Target& target, const c10::IValue& result, const Tensors& inputs) {
  const Tensors results = tensors_in(result);
  const Tensors eager = tensors_in(target.forward(inputs));
  const auto reference = reference_for(target, inputs, eager);
  const Tensors exact = reference ? reference->tensors : Tensors();
  Tensors expected = tensors_in(read_value(file));
  if (expected.size() != results.size()) {
    throw UserError(
        fmt::format("{}: it holds {} tensor(s), the model gives {}", file, expected.size(), results.size()));
  }
  bool ok = true;
  for (size_t i = 0; i < results.size(); ++i) {
    if (expected[i].sizes() != results[i].sizes()) {
      throw UserError(fmt::format("{}: result {} is [{}], the model gives [{}]", file, i,
                                  fmt::join(expected[i].sizes(), ","), fmt::join(results[i].sizes(), ",")));
    }
    const at::Tensor wanted = expected[i].to(results[i].device());
    const auto [accuracy, size] =
        check_tensor(results[i], eager[i], i < exact.size() ? exact[i] : at::Tensor(), wanted);
    fmt::print("{} result {}  largest error {:.3g} of {:.3g} at {} (eager {:.3g}, allowed {:.3g})\n",
               accuracy.ok ? "as saved" : "NOT AS SAVED", i, accuracy.max_error, size,
               place_of_largest(results[i], wanted), accuracy.eager_max_error, accuracy.max_allowed);
    ok = ok && accuracy.ok;
  }
  return ok ? 0 : 1;
}

}  // namespace sinter::command
