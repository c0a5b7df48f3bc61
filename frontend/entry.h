#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "compiler/plan.h"
#include "compiler/support/report.h"
#include "frontend/capture.h"
#include "frontend/frame_pool.h"
#include "frontend/guards.h"
#include "frontend/outputs.h"
#include "frontend/paths.h"
#include "runtime/executable.h"

namespace sinter::frontend {

/// What an entry replays.
struct Replayable {
  Trace trace;
  std::shared_ptr<const Plan> plan;
  std::unique_ptr<TorchHost> host;
  std::unique_ptr<runtime::Executable> executable;
  OutputRules outputs;
  std::string structure;  ///< of the result
  bool random = false;    ///< draws from a generator, so two runs differ
  std::shared_ptr<const OptimizerLink> optimizers;
  std::vector<at::Generator> generators;  ///< that the plan draws from
};

/// Calls of an entry. Entries of one program for several sizes share one.
struct CallCounts {
  std::atomic<int64_t> calls{1};
  std::atomic<int64_t> replays{0};
  std::atomic<int64_t> eager{0};
};

/// One combination of guards and what to do where they hold. Thread-safe once built.
class Entry {
 public:
  explicit Entry(Guards guards) : guards_(std::move(guards)) {}

  [[nodiscard]] const Guards& guards() const { return guards_; }
  [[nodiscard]] bool compiled() const { return compiled_.load(std::memory_order_acquire); }
  [[nodiscard]] const Replayable& replayable() const { return *replayable_; }

  /// Makes the entry replay. Called once, before other threads see the entry.
  void install(std::unique_ptr<Replayable> replayable);
  /// Makes the entry follow recorded courses. Called once, before other threads see the entry.
  void install(std::unique_ptr<Paths> paths);
  /// Those of an entry whose program reads tensors on the host; null for others, which are `replayable`.
  [[nodiscard]] Paths* paths() const { return paths_.get(); }
  /// From here on, calls run as eager runs them.
  void turn_eager(GraphBreak reason, const std::string& internal_error = {});

  /// Counts a call that arrived; gives its number, the call that made the entry being number 1.
  int64_t arrive();
  void count_replay() { counts_->replays.fetch_add(1, std::memory_order_relaxed); }
  void count_eager() { counts_->eager.fetch_add(1, std::memory_order_relaxed); }
  /// Number of the last call that arrived.
  [[nodiscard]] int64_t last_call() const { return last_call_.load(std::memory_order_relaxed); }

  /// The entry that stands in reports for this one and others like it but for sizes: this one, another one, or none.
  /// Set before other threads see the entry; so is what follows.
  [[nodiscard]] const Entry* head() const { return head_; }
  void lead_family() { head_ = this; }
  /// From here on calls are counted, and verifications kept, by the head.
  void join_family(std::shared_ptr<Entry> head);
  /// Adds to the record of a head.
  void change_record(const std::function<void(EntryReport&)>& change);

  /// Runs the plan. False when the call must run eagerly after all: state has died meanwhile, or an operator threw
  /// before anything was written; generators then stand where they stood. So they do when it throws InternalError: the
  /// plan no longer fits and nothing was written. Throws HalfWritten when inputs or state were.
  [[nodiscard]] bool replay(const detail::Flat& arguments, detail::Replay& replay);

  /// For whoever builds the entry, before it is shared; the runtime keeps adding to the record under the mutex.
  [[nodiscard]] EntryReport& record() { return record_; }
  [[nodiscard]] std::mutex& record_mutex() { return mutex_; }
  [[nodiscard]] Guards& guards() { return guards_; }

  void add_verification(Verification verification);
  [[nodiscard]] EntryReport report() const;
  /// CUDA Graphs that one call replays.
  [[nodiscard]] int64_t graphs() const;
  /// True when the entry runs eagerly because the recorded call left tensors that it made where others find them, and
  /// the program's next call may be another one for that. Entries of a second try do not ask for a third.
  [[nodiscard]] bool may_be_setup() const;
  void note_second_try() { second_try_ = true; }
  /// The first break, by value; nothing for an entry that replays.
  [[nodiscard]] std::optional<GraphBreak> first_break() const;

 private:
  mutable std::mutex mutex_;  ///< of the record
  EntryReport record_;
  Guards guards_;
  std::atomic<bool> compiled_{false};
  std::unique_ptr<Replayable> replayable_;
  std::unique_ptr<Paths> paths_;
  FramePool frames_;
  std::shared_ptr<CallCounts> counts_ = std::make_shared<CallCounts>();
  std::atomic<int64_t> last_call_{1};
  const Entry* head_ = nullptr;
  bool second_try_ = false;
  std::shared_ptr<Entry> other_head_;
};

}  // namespace sinter::frontend
