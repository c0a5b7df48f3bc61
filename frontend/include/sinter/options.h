#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/support/options.h"

namespace torch::nn {
class Module;
}

namespace sinter {

struct Event;

/// How a compiled function runs.
enum class Mode : uint8_t {
  Default,         ///< kernels and library calls are launched one by one on the caller's stream
  ReduceOverhead,  ///< on CUDA, every compiled segment is recorded as a CUDA Graph and replayed
  MaxAutotune,     ///< the same, and on CUDA the library's ways to multiply matrices are measured; docs/choices.md
};

/// "default", "reduce-overhead", "max-autotune"
[[nodiscard]] constexpr const char* name(Mode mode) {
  switch (mode) {
    case Mode::Default:
      return "default";
    case Mode::ReduceOverhead:
      return "reduce-overhead";
    case Mode::MaxAutotune:
      return "max-autotune";
  }
  return "";
}

/// Whether replays run the callable's host code.
enum class Replay : uint8_t {
  checked,  ///< they do: every operator is compared with what was recorded, and what differs runs and is recorded
  trusted,  ///< they do not, where a call is one compiled segment and nothing that guards look at has changed
};

/// Options of sinter::compile, for designated initialisers: `{.mode = sinter::Mode::ReduceOverhead}`.
struct Options {
  Mode mode = Mode::Default;
  Numerics numerics = Numerics::fast;

  /// Replay::trusted leaves the host code of the callable out where it can: for callers that count microseconds, and
  /// vouch that the program depends on its arguments, on LibTorch's modes, and on the contents of the tensors it used
  /// before alone, and has no effect beside its results and what it writes to them. docs/trusted-replay.md.
  Replay replay = Replay::checked;

  /// Compute what depends on state alone (a folded weight) once instead of in every call. Promises that nothing writes
  /// to parameters and buffers after the first call; another tensor in the place of one is seen. docs/comparison.md.
  bool freeze = false;

  /// Whether sizes of arguments may change from call to call without a compilation each. Left out: a size that changes
  /// becomes dynamic where every number of the program follows from it. True: the same, and the first shape is compiled
  /// for other sizes too, so that the second builds no kernels. False: every shape is compiled for itself.
  std::optional<bool> dynamic = std::nullopt;

  /// For callables that close over modules: their names in reports. A single module may have an empty name: its parts
  /// are then named without a prefix. Not for callables that are modules themselves.
  std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>> modules = {};

  /// The share of the time of its calls, or of what 1,000 of them would take, that recording and
  /// compiling may take beside the first entry. Beyond it, calls that do what was not recorded run as eager runs them.
  /// On the CPU, compiled calls are also compared with eager ones now and then, and a function that gains nothing is
  /// left to eager. Infinity: neither.
  double compile_budget = 0.1;

  /// Seconds that Mode::MaxAutotune may take to measure what it chooses between, for each compiled segment. What is not
  /// measured by then is what Mode::ReduceOverhead does; 0 measures nothing. docs/choices.md.
  double autotune_seconds = 10;

  /// A break throws UserError that names it, instead of running as eager runs it. docs/breaks.md.
  bool fullgraph = false;

  /// A failure of Sinter itself throws InternalError, instead of being kept in the report while the call runs eagerly.
  bool strict = false;

  /// The function's name in reports. Empty: the module's class name, or "lambda".
  std::string name = {};

  /// False: calls go straight to the callable. Nothing is captured, guarded or counted, no hook of LibTorch's
  /// dispatcher is used, and every other option has no effect. SINTER_DISABLE=1 in the environment, read once, does the
  /// same to all functions of a process.
  bool enabled = true;

  /// Told of every break, and of every recompilation with what differed. Called by the call it happened in, on its
  /// thread and under its modes of LibTorch, once the call's work is done and no lock is held: it may call this or
  /// another function, look at report() and stats(), and reset(). What it does is not recorded. An exception of it does
  /// not reach the caller; the report notes the first one. Calls of several threads call it at the same time.
  /// docs/in-production.md has more.
  std::function<void(const Event&)> on_event = {};
};

}  // namespace sinter
