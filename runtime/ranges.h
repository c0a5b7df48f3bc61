#pragma once

#include <span>
#include <string>

#include "runtime/host.h"
#include "runtime/program.h"

namespace sinter::runtime {

/// Who is told when a compiled call and its steps begin and end: a profiler. Thread-safe; ranges of one thread nest.
class Ranges {
 public:
  virtual ~Ranges() = default;
  /// A whole call, by its function's name.
  virtual void push(const std::string& text) = 0;
  /// A step of a call.
  virtual void push(const KernelSource& kernel);
  virtual void push(const ExternCall& call);
  virtual void pop() noexcept = 0;
};

/// NVTX ranges in the domain "sinter" where SINTER_NVTX asks for them (anything but empty or "0"), else null. The
/// environment is read once. NVTX itself looks for a profiler at the first range and does nothing where there is none.
[[nodiscard]] Ranges* nvtx_ranges();

/// From now on `listener` is told of all calls, in the place of whom their executables were built with; null: those are
/// again. It outlives the calls that are under way when it is taken back.
void listen_to_ranges(Ranges* listener);
/// Who listens now, else `otherwise`.
[[nodiscard]] Ranges* listening_ranges(Ranges* otherwise);

/// A range for the length of a scope, also one left by an exception. Nothing where `ranges` is null.
class RangeScope {
 public:
  template <class What>
  RangeScope(Ranges* ranges, const What& what) : ranges_(ranges) {
    if (ranges_ != nullptr) ranges_->push(what);
  }
  ~RangeScope() {
    if (ranges_ != nullptr) ranges_->pop();
  }
  RangeScope(const RangeScope&) = delete;
  RangeScope& operator=(const RangeScope&) = delete;

 private:
  Ranges* ranges_;
};

/// What a step is called: the kernel's name or the operator, behind the path of its module where one is known.
[[nodiscard]] std::string step_text(const KernelSource& kernel);
[[nodiscard]] std::string step_text(const ExternCall& call);

/// An executor (see interpret) that puts a range around every step of another one.
template <class Executor>
class RangedExecutor {
 public:
  RangedExecutor(Executor& executor, const Plan& plan, Ranges& ranges)
      : executor_(executor), plan_(plan), ranges_(ranges) {}

  void launch(const Program::Launch& launch, std::span<const Program::Param> params, std::span<uint64_t> values) {
    const RangeScope range(&ranges_, plan_.kernels[launch.kernel]);
    executor_.launch(launch, params, values);
  }
  void call(Frame& frame, uint32_t call) {
    const RangeScope range(&ranges_, plan_.calls[call]);
    executor_.call(frame, call);
  }
  void copy(uint64_t to, uint64_t from, int64_t bytes) { executor_.copy(to, from, bytes); }

 private:
  Executor& executor_;
  const Plan& plan_;
  Ranges& ranges_;
};

}  // namespace sinter::runtime
