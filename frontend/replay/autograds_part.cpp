#include "frontend/replay/autograds_part.h"

#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>

#include "compiler/support/errors.h"
#include "compiler/support/planted.h"
#include "frontend/torch/convert.h"
#include "frontend/torch/libtorch_version.h"
#include "frontend/torch/tangent.h"

namespace sinter::frontend {

std::optional<c10::impl::IncludeDispatchKeyGuard> above_autograd_hook() {
  if (c10::GradMode::is_enabled()) return std::nullopt;
  return std::make_optional<c10::impl::IncludeDispatchKeyGuard>(kAboveAutogradKey);
}

bool is_plain_call(c10::DispatchKeySet below) {
  using c10::DispatchKey;
  constexpr c10::DispatchKeySet plain({DispatchKey::Dense, DispatchKey::AutogradFunctionality,
                                       DispatchKey::AutogradOther, DispatchKey::ADInplaceOrView,
                                       DispatchKey::BackendSelect, kCompositesKey, kCaptureKey});
  if (c10::GradMode::is_enabled()) return false;
  const c10::DispatchKeySet functions(c10::DispatchKeySet::RAW, below.raw_repr() & ~c10::full_backend_mask);
  return (functions - plain).empty();
}

bool is_tracked(c10::DispatchKeySet below) { return below.has(c10::DispatchKey::ADInplaceOrView); }

bool is_tracked(const at::Tensor& tensor) {
  if (!tensor.defined() || !is_tracked(tensor.key_set())) return false;
  return !is_tracked(c10::impl::tls_local_dispatch_key_set().excluded_);
}

bool is_any_tracked(CallArguments arguments) {
  bool found = false;
  for (const CallArgument& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& tensor) { found = found || is_tracked(tensor); });
  }
  return found;
}

bool has_tangent(CallArguments arguments) {
  bool found = false;
  for (const CallArgument& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& tensor) {
      found = found || (tensor.defined() && frontend::has_tangent(*tensor.unsafeGetTensorImpl()));
    });
  }
  return found;
}

bool can_do_autograds_part(AboveKernel above, CallArguments arguments) {
  if (above == AboveKernel::unknown) return false;
  if (above == AboveKernel::nothing) return true;
  const at::Tensor* first = tensor_in(arguments.front());
  return first != nullptr && is_tracked(first->key_set());
}

void note_view(const at::Tensor& base, const at::Tensor& view) {
  using torch::autograd::CreationMeta;
  const bool inference = c10::InferenceMode::is_enabled();
  (void)torch::autograd::as_view(base, view, /*is_bw_differentiable=*/true, /*is_fw_differentiable=*/true,
                                 /*view_func=*/nullptr, /*rev_view_func=*/nullptr,
                                 inference ? CreationMeta::INFERENCE_MODE : CreationMeta::NO_GRAD_MODE);
}

void count_writes(const at::Tensor& tensor, int64_t writes) {
  if (tensor.is_inference()) return;
  for (int64_t write = 0; write < writes; ++write) torch::autograd::increment_version(tensor);
}

std::vector<int64_t> versions_of_written(const Step& step, CallArguments arguments) {
  std::vector<int64_t> versions;
  for (const uint32_t position : step.mutates) {
    for_each_tensor(arguments[position], [&](const at::Tensor& tensor) { versions.push_back(version_of(tensor)); });
  }
  return versions;
}

void count_kernels_writes(const Step& step, CallArguments arguments) {
  if (step.raised.empty()) return;
  const std::vector<int64_t> before = versions_of_written(step, arguments);
  if (before.size() != step.raised.size()) throw InternalError("replay", "a list has another number of tensors");
  size_t next = 0;
  for (const uint32_t position : step.mutates) {
    for_each_tensor(arguments[position], [&](const at::Tensor& tensor) {
      // Views that share a version may have it already.
      count_writes(tensor, before[next] + step.raised[next] - version_of(tensor));
      ++next;
    });
  }
}

void do_autograds_part(const Step& step, CallArguments arguments, c10::ArrayRef<c10::IValue> results) {
  if (step.above == AboveKernel::nothing) return;
  const at::Tensor& first = *tensor_in(arguments.front());
  if (step.above == AboveKernel::counts_write) {
    if (!planted(Bug::version_not_raised)) torch::autograd::increment_version(first);
    return;
  }
  for (const c10::IValue& result : results) {
    for_each_tensor(result, [&](const at::Tensor& view) { note_view(first, view); });
  }
}

}  // namespace sinter::frontend
