#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/passes/split_at_reads.h"
#include "frontend/frame_pool.h"
#include "frontend/outputs.h"
#include "runtime/executable.h"
#include "sinter/options.h"

namespace sinter::frontend {

/// What the tensors of a call are, for one of its segments.
struct Bindings {
  std::span<const at::Tensor* const> inputs;  ///< the call's own, then those that earlier segments made
  std::span<const StateSlot> states;
  std::span<const ContentSlot> contents;
};

/// One segment of a program that reads tensors on the host, compiled. Thread-safe.
class CompiledSegment {
 public:
  struct Source {
    const passes::Segment* segment = nullptr;
    std::vector<passes::Made> given;  ///< what later segments need of it
    const std::vector<c10::IValue>* opaques = nullptr;
    std::string key;  ///< segments of equal keys can stand for each other
  };
  /// `inputs` is the number of the call's own tensor arguments; `bindings` holds them and state, for what is computed
  /// once. Throws InternalError when compiling fails.
  CompiledSegment(const Source& source, CompileOptions compile_options, runtime::ExecutableOptions options,
                  uint32_t inputs, const Bindings& bindings);

  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] const Plan& plan() const { return *plan_; }

  /// Runs the segment: what the read that follows looks at is appended to `read`, what later segments need to `made`.
  /// False when state has died meanwhile.
  [[nodiscard]] bool run(const Bindings& bindings, std::vector<at::Tensor>& read, std::vector<at::Tensor>& made);

  /// Runs the last segment, whose outputs are the call's. False when state has died meanwhile, or when an operator
  /// threw before anything was written. Throws HalfWritten when the plan failed after that.
  [[nodiscard]] bool finish(const Bindings& bindings, const OutputRules& rules, const detail::Flat& arguments,
                            detail::Replay& replay);

  /// Adds what it cost and what it runs to a report.
  void add_to(EntryReport& report) const;

 private:
  void prepare(uint32_t inputs, const Bindings& bindings) const;

  std::string key_;
  size_t reads_ = 0;          ///< outputs that the read looks at
  std::vector<bool> copied_;  ///< by given: lies in memory that was there before, or in that of another one
  mutable std::mutex mutex_;  ///< of the record
  EntryReport record_;
  std::shared_ptr<const Plan> plan_;
  std::unique_ptr<TorchHost> host_;
  std::unique_ptr<runtime::Executable> executable_;
  FramePool frames_;
};

/// By output of a plan from `first` on: true where it does not have memory of its own.
[[nodiscard]] std::vector<bool> without_own_memory(const Plan& plan, size_t first);

}  // namespace sinter::frontend
