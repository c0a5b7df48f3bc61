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
namespace torch::optim {
class Optimizer;
}

namespace sinter {

struct Event;

/// How a compiled function runs.
enum class Mode : uint8_t {
  Default,         ///< kernels and library calls are launched one by one on the caller's stream
  ReduceOverhead,  ///< on CUDA, every compiled segment is recorded as a CUDA Graph and replayed
  MaxAutotune,     ///< what ReduceOverhead does; the report says so
};

/// With Replay::trusted: when a call is captured again, and compared with the first capture, to find programs that do
/// not repeat themselves.
class Verify {
 public:
  /// `verify = n` captures the second and every n-th call of an entry again and compares results as well; n >= 1.
  constexpr Verify(int64_t every) : every_(every) {}  // NOLINT(google-explicit-constructor): `.verify = 10` reads well

  [[nodiscard]] constexpr int64_t every() const { return every_; }
  constexpr bool operator==(const Verify&) const = default;

  static const Verify automatic;  ///< calls 2, 4, 8, 16, ... of an entry
  static const Verify off;        ///< never: the caller vouches that the program repeats itself

 private:
  int64_t every_;
};
inline constexpr Verify Verify::automatic{-1};
inline constexpr Verify Verify::off{-2};

/// Whether replays run the callable's host code.
enum class Replay : uint8_t {
  checked,  ///< they do: every operator is compared with what was recorded, and what differs runs and is recorded
  trusted,  ///< they do not: guards say whether what was recorded still holds, and verifications look at the rest
};

/// Options of sinter::compile, for designated initialisers: `{.mode = sinter::Mode::ReduceOverhead}`.
struct Options {
  Mode mode = Mode::Default;
  Numerics numerics = Numerics::fast;
  Verify verify = Verify::automatic;

  /// Replay::trusted leaves the host code of the callable out: for callers that count microseconds, and vouch that the
  /// program depends on its arguments, the contents of its state and LibTorch's modes alone. docs/trusted-replay.md.
  Replay replay = Replay::checked;

  /// Compute what depends on state alone (a folded weight) once instead of in every call. Promises that nothing writes
  /// to parameters and buffers after the first call; another tensor in the place of one is seen. docs/comparison.md.
  bool freeze = false;

  /// Whether sizes of arguments may change from call to call without a compilation each. Left out: a size that changes
  /// becomes dynamic where every number of the program follows from it. True: the same, and the first shape is compiled
  /// for other sizes too, so that the second builds no kernels. False: every shape is compiled for itself.
  std::optional<bool> dynamic = std::nullopt;

  /// For callables that close over modules: their names in reports, and, with Replay::trusted, train() and eval() of
  /// those that Sinter does not find in the closure itself (docs/trusted-replay.md). A single module may have an empty
  /// name: its parts are then named without a prefix. Not for callables that are modules themselves.
  std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>> modules = {};

  /// With Replay::trusted: how many paths of one entry are kept. A callable that reads tensors on the host (item(),
  /// equal, nonzero) is recorded once for each sequence of values that it reads. Calls that read others run as they
  /// are; at least 1.
  int64_t max_paths = 16;

  /// With Replay::trusted: optimizers whose step() the callable makes, SGD, Adam and AdamW. Their numbers (the learning
  /// rate, bias corrections) are computed anew for every call, so that schedulers work, and their step counters go on.
  /// They must outlive the compiled object. With Replay::checked optimizers need not be named.
  std::vector<torch::optim::Optimizer*> optimizers = {};

  /// With Replay::checked: the share of the time of its calls, or of what 1,000 of them would take, that recording and
  /// compiling may take beside the first entry. Beyond it, calls that do what was not recorded run as eager runs them.
  /// On the CPU, compiled calls are also compared with eager ones now and then, and a function that gains nothing is
  /// left to eager. Infinity: neither.
  double compile_budget = 0.1;

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

  /// Told of every break, of every recompilation with what differed, and of a limit that was reached. Called by the
  /// call it happened in, on its thread and under its modes of LibTorch, once the call's work is done and no lock is
  /// held: it may call this or another function, look at report() and stats(), and reset(). What it does is not
  /// recorded. An exception of it does not reach the caller; the report notes the first one. Calls of several threads
  /// call it at the same time. docs/in-production.md has more.
  std::function<void(const Event&)> on_event = {};
};

}  // namespace sinter
