#include "frontend/capture.h"

#include <torch/library.h>

#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "frontend/autocast_cache.h"
#include "frontend/dispatch_hook.h"
#include "frontend/host_call.h"
#include "frontend/left_behind.h"
#include "frontend/libtorch_version.h"
#include "frontend/recorder.h"
#include "frontend/replay/session.h"

namespace sinter::frontend {
namespace {

/// The slot that carries the recorder.
constexpr std::string_view kRecorderSlotName = "sinter recorder";
constexpr auto kRecorderSlot = debug_slot(kRecorderSlotName, 0x53);

/// Runs a step of the recorder. Its failure is no error of the program: it ends the recording.
template <class Step>
void guarded(Recorder& recorder, const c10::OperatorHandle& op, const Step& step) {
  try {
    step();
  } catch (const std::exception& error) {
    recorder.stop({BreakCode::unsupported_op,
                   op.schema().name(),
                   {},
                   std::string("recording it failed: ") + error.what(),
                   "this is a bug in Sinter"});
  }
}

void record_call(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const c10::DispatchKeySet below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kCaptureKey);
  if (Session* session = current_session()) return session->call(op, below, stack);
  Recorder* recorder = current_recorder();
  if (!recorder || !recorder->recording()) return run_below(op, below, stack);
  if (const HostScope* host = HostScope::current()) {
    guarded(*recorder, op,
            [&] { recorder->look_into_host(op, torch::jit::last(*stack, op.schema().arguments().size()), *host); });
    return run_below(op, below, stack);
  }
  if (recorder->opens(op, below)) return op.redispatchBoxed(below, stack);
  run_recorded(*recorder, op, below, stack);
}

}  // namespace

void run_recorded(Recorder& recorder, const c10::OperatorHandle& op, c10::DispatchKeySet below,
                  torch::jit::Stack* stack) {
  std::optional<Recorder::Pending> pending;
  guarded(recorder, op,
          [&] { pending = recorder.before(op, torch::jit::last(*stack, op.schema().arguments().size())); });
  try {
    run_below(op, below, stack);
  } catch (...) {
    if (pending) recorder.note_failure(*pending);
    throw;
  }
  if (!pending) return;
  guarded(recorder, op,
          [&] { recorder.after(std::move(*pending), torch::jit::last(*stack, op.schema().returns().size())); });
}

/// Nothing reaches it while no capture includes the key.
static_assert(kCaptureKey == c10::DispatchKey::Fake);
TORCH_LIBRARY_IMPL(_, Fake, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&record_call>()); }

Recorder* current_recorder() { return static_cast<Recorder*>(c10::ThreadLocalDebugInfo::get(kRecorderSlot)); }

bool capturing() { return current_recorder() != nullptr || current_session() != nullptr; }

Trace capture(const std::function<std::vector<at::Tensor>()>& program, std::span<const at::Tensor> inputs,
              std::span<const NamedTensor> names, std::vector<at::Tensor>* outputs, std::string* failed_at,
              std::span<const WeakTensor> leaves) {
  const auto start = std::chrono::steady_clock::now();
  if (Recorder* outer = current_recorder()) {
    outer->stop({BreakCode::unsupported_op, {}, {}, "a capture starts inside a capture", "compile one of the two"});
  }
  const Surroundings before;
  const AutocastCache cache;
  const auto recorder = std::make_shared<Recorder>(inputs, names, leaves);
  recorder->begin_on_stack(__builtin_frame_address(0));
  std::vector<at::Tensor> results;
  try {
    const c10::DebugInfoGuard carry(kRecorderSlot, recorder);
    const DispatchHook hook;
    results = program();
  } catch (...) {
    if (failed_at) *failed_at = recorder->failed_at();
    throw;
  }
  Trace trace = recorder->finish(results);
  if (!trace.graph_break) trace.graph_break = before.changed_by(trace);
  if (!trace.graph_break) trace.graph_break = cache.break_of(trace);
  trace.cuda_device = before.cuda_device();
  trace.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (outputs) *outputs = std::move(results);
  return trace;
}

}  // namespace sinter::frontend
