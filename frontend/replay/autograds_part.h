#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>
#include <vector>

#include "frontend/torch/call_argument.h"
#include "frontend/trace/step.h"

/// While gradients are off, autograd's kernels do little: they count writes in versions and note what is a view of
/// what. A hook above them answers known operators with that little, and without their cost.
namespace sinter::frontend {

/// While it lives, calls of this thread meet the hook above autograd first. None where gradients are on.
[[nodiscard]] std::optional<c10::impl::IncludeDispatchKeyGuard> above_autograd_hook();

/// True where these keys under the hook are those of a backend and autograd alone, and gradients are off: no autocast,
/// no transform of functions, nothing that another library put between.
[[nodiscard]] bool is_plain_call(c10::DispatchKeySet below);

/// True where a call with these keys would come to the kernels that count writes and note views. They are switched off
/// inside other kernels, and are not called for inference tensors.
[[nodiscard]] bool is_tracked(c10::DispatchKeySet below);

/// True where a call that a composite operator makes with this tensor would come to them. The operator itself has no
/// kernels for those keys, so that its call does not tell.
[[nodiscard]] bool is_tracked(const at::Tensor& tensor);
[[nodiscard]] bool is_any_tracked(CallArguments arguments);

/// True where what they do for a step with these arguments can be done by do_autograds_part.
[[nodiscard]] bool can_do_autograds_part(AboveKernel above, CallArguments arguments);

/// Counts writes into a tensor; those of inference mode count none.
void count_writes(const at::Tensor& tensor, int64_t writes);

/// The versions of what a step writes, in the order of Step::raised.
[[nodiscard]] std::vector<int64_t> versions_of_written(const Step& step, CallArguments arguments);
/// Counts the writes that a step's kernel itself counts.
void count_kernels_writes(const Step& step, CallArguments arguments);

/// Does it: versions of what the step writes, views among its results.
void do_autograds_part(const Step& step, CallArguments arguments, c10::ArrayRef<c10::IValue> results);

/// Makes a result a view of an argument, as view operators do.
void note_view(const at::Tensor& base, const at::Tensor& view);

/// True where forward-mode AD has put a tangent beside one of these.
[[nodiscard]] bool has_tangent(CallArguments arguments);

}  // namespace sinter::frontend
