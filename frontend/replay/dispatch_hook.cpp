#include "frontend/replay/dispatch_hook.h"

#include <torch/library.h>

#include "frontend/replay/session.h"

namespace sinter::frontend {
namespace {

void meet_operator(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const c10::DispatchKeySet below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kCaptureKey);
  if (Session* session = current_session()) return session->call(op, below, stack);
  run_below(op, below, stack);
}

}  // namespace

/// Nothing reaches it while no session includes the key.
static_assert(kCaptureKey == c10::DispatchKey::Fake);
TORCH_LIBRARY_IMPL(_, Fake, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&meet_operator>()); }

}  // namespace sinter::frontend
