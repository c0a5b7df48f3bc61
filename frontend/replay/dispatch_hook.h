#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include "frontend/replay/composites.h"
#include "frontend/torch/libtorch_version.h"

namespace sinter::frontend {

/// While it lives, every ATen call of this thread, and of those that LibTorch carries its state to, reaches the hook.
class DispatchHook {
 private:
  c10::impl::IncludeDispatchKeyGuard include_{kCaptureKey};
  CatchComposites composites_;
  // TorchScript that the program calls runs operator by operator: kernels it fuses itself no recording sees.
  torch::jit::GraphOptimizerEnabledGuard no_fused_scripts_{false};
};

/// The keys of the kernels under a hook, of those that a call meets it with.
[[nodiscard]] inline c10::DispatchKeySet keys_under(c10::DispatchKey hook, c10::DispatchKeySet keys) {
  return keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, hook);
}

/// The hooks: boxed kernels of every operator, under autograd and above it.
void meet_operator(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
void meet_operator_above_autograd(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

/// Runs the kernel under the hook, found by the keys `below`. What it calls in turn does not reach the hook.
inline void run_below(const c10::OperatorHandle& op, c10::DispatchKeySet below, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard exclude(kHookKeys);
  op.redispatchBoxed(below.remove(kCaptureKey), stack);
}

}  // namespace sinter::frontend
