#include "frontend/replay/dispatch_hook.h"

#include <torch/library.h>

#include "frontend/replay/session.h"

namespace sinter::frontend {

void meet_operator(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const c10::DispatchKeySet below = keys_under(kCaptureKey, keys);
  if (Session* session = current_session()) return session->call(op, below, stack);
  run_below(op, below, stack);
}

void meet_operator_above_autograd(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const c10::DispatchKeySet below = keys_under(kAboveAutogradKey, keys);
  Session* session = current_session();
  if (session == nullptr) return op.redispatchBoxed(below, stack);
  session->call_above_autograd(op, below, stack);
}

/// Nothing reaches it while no session includes the key.
static_assert(kCaptureKey == c10::DispatchKey::Fake);
TORCH_LIBRARY_IMPL(_, Fake, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&meet_operator>()); }

static_assert(kAboveAutogradKey == c10::DispatchKey::TESTING_ONLY_GenericMode);
TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&meet_operator_above_autograd>());
}

}  // namespace sinter::frontend
