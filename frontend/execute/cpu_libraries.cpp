#include "frontend/execute/cpu_libraries.h"

#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "frontend/torch/libtorch_version.h"
#include "runtime/stopwatch.h"

namespace sinter::frontend {
namespace {

using at::Tensor;
using LinearPointwise = Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&, std::string_view,
                               c10::List<std::optional<at::Scalar>>, std::optional<std::string_view>);

constexpr int64_t rows = 128;
constexpr int64_t columns = 768;
constexpr int rounds = 5;         ///< after one that warms up; the fastest of each counts
constexpr double clearly = 1.05;  ///< times faster

bool measure() {
  const auto found = c10::Dispatcher::singleton().findSchemaOrThrow("mkldnn::_linear_pointwise", "");
  const c10::impl::ExcludeDispatchKeyGuard no_hook(kHookKeys);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  const Tensor left = at::ones({rows, columns}, at::TensorOptions(at::kCPU).dtype(at::kFloat));
  // A weight as linear layers have it: the BLAS reads it the other way round, oneDNN as it lies.
  const Tensor weight = at::ones({columns, columns}, left.options());
  const Tensor right = weight.t();
  const auto linear = found.typed<LinearPointwise>();
  double best_blas = std::numeric_limits<double>::infinity();
  double best_onednn = best_blas;
  for (int round = 0; round <= rounds; ++round) {
    const runtime::Stopwatch blas;
    (void)at::mm(left, right);
    const double of_blas = blas.seconds();
    const runtime::Stopwatch onednn;
    (void)linear.call(left, weight, std::nullopt, "none", c10::List<std::optional<at::Scalar>>(), std::nullopt);
    const double of_onednn = onednn.seconds();
    if (round == 0) continue;
    best_blas = std::min(best_blas, of_blas);
    best_onednn = std::min(best_onednn, of_onednn);
  }
  return best_blas > clearly * best_onednn;
}

}  // namespace

bool has_onednn() {
  const at::Context& context = at::globalContext();
  return at::Context::hasMKLDNN() && context.userEnabledMkldnn();
}

bool multiplies_faster_with_onednn() {
  if (!has_onednn()) return false;
  static const bool faster = measure();
  return faster;
}

}  // namespace sinter::frontend
