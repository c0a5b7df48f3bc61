#include <ATen/core/TensorBody.h>
#include <ATen/ops/argmax.h>
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

struct Checked {
  bench::Accuracy accuracy;
  double size = 0;         ///< largest finite magnitude of what was expected
  double error = 0;        ///< largest distance; infinite where only one of both is nan or an infinity
  std::string place;       ///< of that element: "[0, 17]"
  bool same_kinds = true;  ///< nan and the same infinity in the same places
};

std::string place_in(const at::Tensor& tensor, int64_t flat) {
  std::vector<int64_t> place(static_cast<size_t>(tensor.dim()));
  for (size_t d = place.size(); d-- > 0;) {
    place[d] = flat % tensor.size(static_cast<int64_t>(d));
    flat /= tensor.size(static_cast<int64_t>(d));
  }
  return fmt::format("[{}]", fmt::join(place, ", "));
}

/// What was saved is rounded as eager's result is: where `exact` (wider; may be undefined) tells how far eager is
/// from the truth, a result may be twice as far from the truth, and what was saved as far on the other side.
void allow_for_rounding(bench::Accuracy& accuracy, const at::Tensor& result, const at::Tensor& eager,
                        const at::Tensor& exact) {
  if (!exact.defined() || exact.sizes() != eager.sizes() || !eager.is_floating_point()) return;
  const bench::Accuracy rounding = bench::compare(eager, eager, exact);
  accuracy.max_allowed = std::max(accuracy.max_allowed, 3 * rounding.max_error);
  accuracy.rms_allowed = std::max(accuracy.rms_allowed, 3 * rounding.rms_error);
  const bool same_kind = result.scalar_type() == eager.scalar_type() && bench::same_special_values(result, eager);
  accuracy.ok = accuracy.ok ||
                (same_kind && accuracy.max_error <= accuracy.max_allowed && accuracy.rms_error <= accuracy.rms_allowed);
}

Checked check_tensor(const at::Tensor& result, const at::Tensor& eager, const at::Tensor& exact,
                     const at::Tensor& expected) {
  Checked checked{.accuracy = bench::compare(result, eager, expected), .place = "[]"};
  allow_for_rounding(checked.accuracy, result, eager, exact);
  checked.size = bench::largest_finite(expected);
  if (const at::Tensor far = bench::distances(result, expected); far.numel() > 0) {
    checked.error = far.max().item<double>();
    checked.place = place_in(result, far.argmax().item<int64_t>());
  }
  checked.same_kinds = bench::same_special_values(result, expected);
  const bool same_inputs =
      bench::same_special_values(eager, expected) &&
      checked.accuracy.eager_max_error <= largest_relative_error(eager.scalar_type()) * std::max(checked.size, 1.0);
  checked.accuracy.ok = checked.accuracy.ok && checked.same_kinds && same_inputs;
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
    if (expected[i].is_complex() != results[i].is_complex()) {
      throw UserError(fmt::format("{}: result {} is {}, the model gives {}", file, i,
                                  c10::toString(expected[i].scalar_type()), c10::toString(results[i].scalar_type())));
    }
    const at::Tensor wanted = expected[i].to(results[i].device());
    const Checked checked = check_tensor(results[i], eager[i], i < exact.size() ? exact[i] : at::Tensor(), wanted);
    const bench::Accuracy& accuracy = checked.accuracy;
    fmt::print("{} result {}  largest error {:.3g} of {:.3g} at {} (eager {:.3g}, allowed {:.3g}){}\n",
               accuracy.ok ? "as saved" : "NOT AS SAVED", i, checked.error, checked.size, checked.place,
               accuracy.eager_max_error, accuracy.max_allowed,
               checked.same_kinds ? "" : "  nan or infinity in other places");
    ok = ok && accuracy.ok;
  }
  return ok ? 0 : 1;
}

}  // namespace sinter::command
