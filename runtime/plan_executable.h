#pragma once

#include <memory>
#include <vector>

#include "runtime/executable.h"
#include "runtime/interpret.h"
#include "runtime/program.h"
#include "runtime/ranges.h"

namespace sinter::runtime {

/// What executables of both back ends share: the flattened plan, frozen buffers, and outputs that need memory of
/// their own.
class PlanExecutable : public Executable {
 public:
  PlanExecutable(std::shared_ptr<const Plan> plan, Host& host, Ranges* ranges);

  void prepare(Frame& frame) final;
  void run(Frame& frame, size_t started) final;

 protected:
  /// One call, its range open.
  virtual void run_call(Frame& frame, size_t started);
  /// Runs a program of this plan over a frame.
  virtual void execute(const Program& program, Frame& frame) = 0;
  /// Copies memory of this plan's device, in order with what `execute` started on this thread.
  virtual void copy_on_device(void* to, const void* from, int64_t bytes) = 0;
  /// Waits for what `execute` started on this thread.
  virtual void wait() = 0;
  /// False while nothing may be waited for: the caller records the stream.
  [[nodiscard]] virtual bool may_wait() const { return true; }
  /// The stream, a CUstream, that memory allocated now belongs to; null on the CPU.
  [[nodiscard]] virtual void* stream_of_memory() const { return nullptr; }

  /// Runs a program step by step, each in its range.
  template <class Executor>
  void run_steps(const Program& program, Frame& frame, Executor executor) {
    Ranges* ranges = listening_ranges(ranges_);
    if (ranges == nullptr) return interpret(program, frame, executor);
    interpret(program, frame, RangedExecutor(executor, *plan_, *ranges));
  }

  /// Binds the frozen buffers in a call's frame; computes them there when none were kept, and where the caller records
  /// the stream: his graph may outlive what is kept.
  void share_frozen(Frame& frame);
  /// Gives outputs that lie in frozen memory a copy of it: the caller may write to them.
  void copy_kept_outputs(Frame& frame);
  [[nodiscard]] bool has_kept_outputs() const { return !kept_outputs_.empty(); }

  [[nodiscard]] const Plan& plan() const { return *plan_; }
  [[nodiscard]] Host& host() const { return host_; }
  [[nodiscard]] const Program& steps() const { return steps_; }
  /// Holds the frozen buffers; null when there are none, or none could be kept.
  [[nodiscard]] const Frame* kept() const { return kept_.get(); }
  /// The stream that their memory belongs to.
  [[nodiscard]] void* kept_on() const { return kept_on_; }

 private:
  std::shared_ptr<const Plan> plan_;
  Host& host_;
  Ranges* ranges_;
  Program once_;
  Program steps_;
  std::vector<BufferId> frozen_;
  std::unique_ptr<Frame> kept_;
  void* kept_on_ = nullptr;
  std::vector<BufferId> kept_outputs_;  ///< frozen roots of outputs
  std::vector<BufferId> kept_binds_;    ///< views of them among the outputs
};

/// The kernels `steps` and `once` of a plan launch over at least one point, in ascending order.
[[nodiscard]] std::vector<uint32_t> launched_kernels(const Plan& plan);

/// The record of one kernel, launches per call counted, before anything is known of its build.
[[nodiscard]] KernelRecord record_of(const Plan& plan, uint32_t kernel);

}  // namespace sinter::runtime
