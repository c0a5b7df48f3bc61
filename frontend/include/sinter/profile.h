#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sinter/sinter.h"

namespace sinter {

/// What part of a step an operator belongs to.
enum class Phase : uint8_t {
  forward,
  loss,       ///< after the last operator of the model and before its backward pass
  backward,   ///< called by autograd
  optimizer,  ///< outside of autograd, without gradients: touches gradients or what was computed of them
  compiled,   ///< a step of a compiled segment: its plan does not say which phases went in
  other,      ///< everything else
};

/// "forward"
[[nodiscard]] const char* name(Phase phase);

/// How the module of an operator was found.
enum class Attribution : uint8_t {
  none,       ///< it has no module
  stated,     ///< a model file says it, or the plan of a compiled segment
  parameter,  ///< it reads or writes a parameter or buffer of the module, or a gradient or state of one
  stack,      ///< it was called by a member function of the module's class
  between,    ///< the module that holds the operators before and after it
  loss,       ///< it is part of the loss, or of its backward pass: outside of all modules
};

/// One operator that a step called, or one kernel of a compiled segment. Times are in microseconds.
struct ProfiledOperator {
  std::string op;        ///< "aten::addmm", or a generated kernel's name, "fused_add_relu"
  std::string autograd;  ///< the node that called it, "AddmmBackward0"; empty outside of backward passes
  Phase phase = Phase::other;
  Attribution how = Attribution::none;
  int64_t module = -1;               ///< position in ModeProfile::modules; -1: none
  std::vector<std::string> modules;  ///< paths of all that went into a generated kernel; else empty
  std::string line;                  ///< of the forward code, "vit.cpp:61", or a function's name; empty where not known
  int64_t step = 0;                  ///< of the traced steps
  uint64_t thread = 0;               ///< LibTorch's number of the thread that called it
  double start = 0;                  ///< since the first traced step began
  double host = 0;                   ///< until it returned, without steps of compiled segments inside of it
  double device = 0;                 ///< in which its kernels and copies kept the device busy; 0 on the CPU
  int64_t launches = 0;              ///< kernels, copies and fills of the device
  int64_t allocated = 0;             ///< bytes, in the last traced step; 0 in the others
  int64_t bytes = -1;                ///< that it must read and write at least; -1: not known
  double flops = 0;                  ///< of matrix products, convolutions and attention; 0 where bytes are not known
  std::string dtype = {};            ///< of those, "f16"; empty: none, or of several
};

/// A kernel, copy or fill that ran on a GPU. Times are in microseconds.
struct ProfiledKernel {
  std::string name;
  int64_t op = -1;  ///< position in ModeProfile::operators; -1: not known
  uint32_t stream = 0;
  double start = 0;  ///< since the first traced step began
  double time = 0;
  bool in_graph = false;  ///< a node of a replayed CUDA Graph
};

/// A place where the host waited for a GPU, all traced steps together.
struct ProfiledWait {
  std::string call;     ///< "cudaStreamSynchronize"
  std::string op = {};  ///< operator that waited; empty: the program itself
  Phase phase = Phase::other;
  int64_t module = -1;
  std::string line = {};
  std::string hint = {};    ///< what to do instead; empty where nothing is known
  int64_t count = 0;        ///< a step
  double milliseconds = 0;  ///< a step
  double idle = 0;          ///< milliseconds a step that the device then had nothing to do
};

/// A module of the profiled program and the time of its own operators, without those of its parts. Milliseconds a step,
/// of the device where there is one, else of the host.
struct ProfiledModule {
  std::string path;  ///< "layer1.0.bn1"; empty for a model itself
  std::string kind;  ///< its class, "BatchNorm2d"; empty where not known
  int64_t parent = -1;
  double forward = 0;
  double backward = 0;
  double optimizer = 0;
  double compiled = 0;    ///< steps of compiled segments
  int64_t operators = 0;  ///< a step
  int64_t launches = 0;   ///< a step
  int64_t saved = 0;      ///< bytes of its forward pass that live when the backward pass begins, or at the peak without
                          ///< one; in a compiled step those at the fullest moment of a segment
};

/// Bytes that live at the moment of a step at which most were, by what they are for.
struct MemoryOwner {
  /// "parameters", "gradients", "optimizer state", "saved activations", "passing gradients", "arenas and results of
  /// segments", "held between steps", "other"
  std::string kind;
  int64_t module = -1;
  int64_t bytes = 0;
};

/// What forward operators of one name gave and the backward pass keeps, where they only stream over their operands:
/// pointwise operators, norms, copies. Computed again when it is needed, it would not be kept.
struct RecomputedActivations {
  std::string op;           ///< "aten::gelu"
  int64_t operators = 0;    ///< of a step
  int64_t bytes = 0;        ///< of what they gave, at the peak: at most so much is saved, as operands may have to stay
  double milliseconds = 0;  ///< a step, that computing it again takes, as long as the first time
};

/// Bytes that live at the moment of a run of a compiled segment at which most do, of one kind, phase and module.
struct SegmentMemory {
  SegmentOwner::Kind kind = SegmentOwner::Kind::temporary;
  Phase phase = Phase::other;
  int64_t module = -1;
  std::string line = {};  ///< of the largest of them
  int64_t bytes = 0;
};

/// A segment that a compiled step has run, and the memory that it takes for itself.
struct ProfiledSegment {
  std::string signature;                   ///< "f32[64,3,224,224], i64[64]"
  int64_t arena = 0;                       ///< bytes of its arena
  int64_t graphs = 0;                      ///< CUDA Graphs that a run replays; 0: launched directly
  std::vector<SegmentMemory> owners = {};  ///< of its fullest moment, the largest first
};

struct ProfiledMemory {
  int64_t before = -1;    ///< parameters, buffers and gradients that were there when the step began; -1: not known
  int64_t held = 0;       ///< what else LibTorch's allocator had given out then: inputs, graphs, workspaces; 0 on a CPU
  int64_t peak = -1;      ///< most bytes at one time, `before` and `held` included; -1: not known
  int64_t reserved = -1;  ///< most bytes that the allocator kept of the device, given out or not; -1: not known
  std::vector<MemoryOwner> owners = {};  ///< of the peak, the largest first
  std::vector<MemoryOwner> saved = {};   ///< of forward passes, when the backward pass begins; eager alone
  std::vector<RecomputedActivations> recomputed = {};  ///< if the backward pass did, the largest first; in eager steps
};

/// What the time of the traced steps went to: shares from 0 to 1 that add up to 1. Several streams of the device are
/// one: it is busy while any of them is.
struct StepShares {
  double busy = 0;     ///< the device worked
  double between = 0;  ///< it was idle though the next work was launched: between kernels, of a CUDA Graph too
  double launch = 0;   ///< idle while the host was inside of calls that launch: bound by launches
  double wait = 0;     ///< idle while the host was inside of calls that wait for it
  double host = 0;     ///< idle while the host did anything else: bound by the host
};

/// The most that a kind of arithmetic reached on a device.
struct ArithmeticPeak {
  std::string dtype;  ///< of the operands of a matrix product, "f16"
  double flops = 0;   ///< a second
};

/// How fast a device is, measured with a copy and with products of large matrices after the traced steps. Nothing is
/// known of what could not be measured.
struct DeviceLimits {
  double bandwidth = 0;                    ///< bytes read and written a second; 0: not known
  std::vector<ArithmeticPeak> peaks = {};  ///< of the dtypes that products of the steps have
  std::string problem = {};                ///< why nothing is known; else empty

  /// Microseconds that a call of this operator takes at least; nothing where its work or the device is not known.
  [[nodiscard]] std::optional<double> least_time(const ProfiledOperator& op) const;
};

/// Steps of one program, as eager runs them or compiled.
struct ModeProfile {
  std::string mode;    ///< "eager", "default", "reduce-overhead"
  std::string device;  ///< "cpu", "cuda:0"
  int64_t steps = 0;
  bool deterministic = false;               ///< LibTorch's deterministic algorithms were on
  double step_ms = 0;                       ///< a step that is not traced, waited for; median
  double traced_step_ms = 0;                ///< a traced one; median
  std::vector<ProfiledOperator> operators;  ///< of all traced steps, as they began; then those of replayed graphs
  std::vector<ProfiledKernel> kernels;
  std::vector<ProfiledModule> modules;    ///< a module stands before its parts
  std::vector<ProfiledWait> waits;        ///< those that wait longest first
  std::vector<ProfiledSegment> segments;  ///< of a compiled mode, those with the largest arena first
  std::optional<StepShares> shares;       ///< empty where a device's times are not known
  ProfiledMemory memory;
  DeviceLimits limits;
  std::vector<std::string> notes;  ///< what could not be seen, and why

  /// Share of the time of all operators that belongs to a module or to the loss; 0 to 1, 0 without operators.
  [[nodiscard]] double attributed() const;
  /// Microseconds of an operator: of the device where one was traced, else of the host.
  [[nodiscard]] double time_of(const ProfiledOperator& op) const { return on_device() ? op.device : op.host; }
  /// StepShares::busy; 0 where the device's times are not known.
  [[nodiscard]] double busy() const { return shares ? shares->busy : 0; }
  /// True where the times of a device are known.
  [[nodiscard]] bool on_device() const { return !kernels.empty(); }
};

/// What sinter::profile gives.
struct Profile {
  std::string name;
  std::vector<ModeProfile> modes = {};  ///< eager first

  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string json() const;          ///< schema in docs/profiling.md
  [[nodiscard]] std::string chrome_trace() const;  ///< for ui.perfetto.dev and chrome://tracing
};

/// Prints Profile::text().
std::ostream& operator<<(std::ostream& out, const Profile& profile);

/// Options of sinter::profile.
struct ProfileOptions {
  int64_t steps = 3;   ///< that are traced; as many run before without a trace, for their time
  int64_t warmup = 3;  ///< steps before that, which count for nothing; at least 9 for a compiled callable
  /// With these options the callable is profiled compiled as well. Empty: as eager runs it alone.
  std::optional<Options> compile = std::nullopt;
  /// For callables that close over modules; as Options::modules.
  std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>> modules = {};
  std::string name = {};  ///< empty: the module's class name, or "lambda"
  /// Measures how fast the device is, which takes some milliseconds on a GPU, a tenth of a second on a CPU and 256 MiB.
  bool limits = true;
};

namespace detail {

/// What is profiled, without its types.
struct ProfiledProgram {
  std::function<void()> step;
  std::function<void()> compiled_step;  ///< empty: not asked for
  std::function<Report()> report;       ///< of the compiled step
  std::function<void()> direct_step;    ///< the same without CUDA Graphs
  std::shared_ptr<torch::nn::Module> self;
};

[[nodiscard]] Profile run_profile(const ProfiledProgram& program, const ProfileOptions& options);

/// What sinter::profile returns.
template <class Callable>
class Profiled {
 public:
  Profiled(Callable callable, ProfileOptions options) : callable_(std::move(callable)), options_(std::move(options)) {}

  /// Runs the callable on these arguments, several times, so that its effects happen several times. What it throws
  /// passes, and nothing is watched any more. Threads that it leaves running must have no operator at work when a step
  /// returns. One profile at a time in a process: throws UserError for a second one.
  template <class... Args>
  [[nodiscard]] Profile operator()(Args&&... args) {
    ProfiledProgram program;
    program.self = module_of(callable_);
    program.step = [&] { (void)invoke(callable_, pass<Args>(args)...); };
    if (options_.compile) {
      Options options = *options_.compile;
      if (!program.self && options.modules.empty()) options.modules = options_.modules;
      const auto compiled = sinter::compile(callable_, options);
      program.report = [compiled] { return compiled.report(); };
      program.compiled_step = [&args..., compiled] { (void)compiled(pass<Args>(args)...); };
      options.mode = Mode::Default;
      program.direct_step = [&args..., fast = sinter::compile(callable_, options)] { (void)fast(pass<Args>(args)...); };
    }
    return run_profile(program, options_);
  }

 private:
  Callable callable_;
  ProfileOptions options_;
};

}  // namespace detail

/// Profiles a `torch::nn` module, a lambda or a function on the arguments of a call:
///
///     auto step = [&](const torch::Tensor& x, const torch::Tensor& y) { ... loss.backward(); optimizer.step(); };
///     std::cout << sinter::profile(step, {.modules = {{"", model.ptr()}}})(x, y);
///
/// Modules are shared with the caller, lambdas are copied or moved in.
template <class Callable>
[[nodiscard]] detail::Profiled<std::decay_t<Callable>> profile(Callable&& callable, ProfileOptions options = {}) {
  return {std::forward<Callable>(callable), std::move(options)};
}

}  // namespace sinter
