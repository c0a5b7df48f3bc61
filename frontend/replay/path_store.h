#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/replay/budget.h"
#include "frontend/replay/findings.h"
#include "frontend/replay/session.h"
#include "frontend/report/counters.h"
#include "frontend/torch/modules.h"
#include "runtime/graph_pool.h"

namespace sinter::frontend {

/// The recorded and compiled segments of one function. What it keeps is bounded: compiled segments make room by last
/// use; recorded steps, once there are too many, all at once. Thread-safe.
class PathStore final : public PathLibrary {
 public:
  /// What is given by reference outlives it.
  PathStore(const Options& options, const std::vector<NamedModule>& modules, std::string function, Counters& counters,
            Budget& budget, Findings& findings);

  const OpTraits& traits(const c10::OperatorHandle& op) override;
  std::shared_ptr<PathTree> tree(const Modes& settings) override;
  LentMemory& lent_memory() override { return lent_; }
  TensorTable::Room take_room() override;
  void keep_room(TensorTable::Room room) override;
  std::shared_ptr<CompiledPath> compiled(const Matched& segment, News& news) override;
  void note_failed_run(const Matched& segment, const std::string& error, News& news) override;
  [[nodiscard]] bool may_record() const override { return budget_.allows_recording(); }
  void note_recording(double seconds) override;
  void note_end(PathTree& tree, PathNode& end, std::span<const TraceMemoryId> escaped,
                std::string_view reason) override;
  [[nodiscard]] bool grow(PathTree& tree, PathNode& at, const c10::OperatorHandle& op,
                          std::span<const TraceValue* const> taken, std::span<const int64_t> vouched) override;
  void exclude(const c10::OperatorHandle& op) override;
  void note(GraphBreak reason, News& news) override { findings_.note(std::move(reason), news); }
  void note(Recompilation divergence, News& news) override { findings_.note(std::move(divergence), news); }
  [[nodiscard]] std::string module_of(const at::Tensor& tensor) const override;

  /// True where all work is done when a call ends.
  [[nodiscard]] bool on_the_cpu() const { return !uses_gpu_.load(std::memory_order_relaxed); }
  /// Seconds that recording took since this was last asked.
  [[nodiscard]] double take_recorded();
  [[nodiscard]] std::vector<EntryReport> reports() const;
  /// Sentences for the report.
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  static constexpr size_t max_steps = 65536;
  static constexpr size_t max_paths = 512;
  static constexpr int most_failed_runs = 3;                ///< of a segment, until it is compiled no more
  static constexpr size_t max_rooms = 4, max_room = 16384;  ///< of calls at the same time; memories in each

  struct Kept {
    std::shared_ptr<PathTree> tree;  ///< of `end`
    PathNode* end = nullptr;
    std::shared_ptr<CompiledPath> path;
    size_t operators = 0;   ///< their hash
    bool instance = false;  ///< of a family
  };

  std::shared_ptr<CompiledPath> compile(const Matched& segment, News& news);
  std::shared_ptr<CompiledPath> build(const Matched& segment, News& news);
  [[nodiscard]] std::vector<TraceValueId> states_of(const Matched& segment) const;
  bool came_for_other_sizes(const PathHash& hash);
  static void add_instance(EntryReport& family, const EntryReport& instance);
  void keep(Kept kept);
  void give_up(PathNode& end, std::string why);
  void make_room_for_steps();

  const Options& options_;
  const std::string function_;
  Counters& counters_;
  Budget& budget_;
  Findings& findings_;
  const std::shared_ptr<runtime::GraphPools> pools_ = std::make_shared<runtime::GraphPools>();
  std::atomic<bool> uses_gpu_{false};
  std::atomic<double> recorded_{0};  ///< seconds
  std::atomic<int64_t> clock_{0};    ///< compiled segments that ran
  std::unordered_map<const c10::TensorImpl*, std::string> modules_;
  LentMemory lent_;
  std::mutex rooms_mutex_;
  std::vector<TensorTable::Room> rooms_;  ///< that no call uses now
  mutable std::mutex mutex_;              ///< of what follows
  OpFactsCache facts_;
  std::vector<std::pair<Modes, std::shared_ptr<PathTree>>> trees_;
  std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<OpTraits>> traits_;
  std::vector<Kept> paths_;
  std::unordered_map<size_t, size_t> sizes_;  ///< that a path of these operators was compiled for, by their hashes
  int64_t evicted_ = 0;                       ///< compiled segments
};

}  // namespace sinter::frontend
