#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/trace/call_match.h"
#include "frontend/trace/expectation.h"
#include "frontend/trace/known_backward.h"
#include "frontend/trace/shortcut.h"
#include "frontend/trace/step.h"

namespace sinter::frontend {

class CompiledPath;
class PathFamilies;

/// What is known of segments that end behind a step.
struct Ending {
  std::mutex mutex;                                       ///< held by whoever compiles, and of what follows
  std::vector<TraceMemoryId> escaped;                     ///< memories that ever outlived a segment that ended here
  int64_t visits = 0;                                     ///< segments that ended here
  std::vector<std::string> reasons;                       ///< why they did: an operator, the end of the call
  std::string refusal;                                    ///< why they cannot be compiled; or empty
  int failed_runs = 0;                                    ///< that threw where their operators did not
  std::vector<TraceValueId> no_states;                    ///< inputs that have come in other memory
  bool instance = false;                                  ///< follows from recordings for other sizes
  std::atomic<std::shared_ptr<CompiledPath>> compiled{};  ///< null before it is

  /// A segment ended here for this reason, and these memories outlived it.
  void add(std::span<const TraceMemoryId> memories, std::string_view reason);
};

/// A place in the tree of recorded segments: behind `step`, all of whose predecessors are those of `parent`.
/// Readers take no lock: what is set when a node is published never changes, and siblings are only added in front.
struct PathNode {
  const PathNode* parent = nullptr;  ///< null: the beginning of all segments
  Step step;                         ///< none at the beginning
  uint32_t depth = 0;
  uint32_t values = 0, memories = 0;  ///< up to and with this step
  /// By number of the step: it once differed, and is given on every call from then on. Only ever grows.
  std::atomic<uint64_t> live{0};
  std::atomic<PathNode*> first{nullptr};
  std::atomic<const Shortcut*> shortcuts{nullptr};      ///< composite operators that begin here
  std::atomic<const KnownBackward*> backward{nullptr};  ///< passes that begin here
  PathNode* sibling = nullptr;
  Expectation expected;  ///< of segments that begin with this step
  Ending ending;
};

/// Recorded segments that begin under the same modes, as a tree of their steps. Thread-safe.
class PathTree {
 public:
  PathTree();
  ~PathTree();
  [[nodiscard]] PathNode& root() { return nodes_.front(); }
  struct Added {
    PathNode& node;
    bool is_new = false;  ///< else another thread has added an equal one meanwhile
  };
  /// Adds a step behind a node.
  Added add(PathNode& behind, Step step);
  /// The node behind `at` whose step is this call; null where there is none. Numbers may differ where the step has
  /// them: those that do are live from then on. The table holds what the step takes then, else nothing new.
  [[nodiscard]] static PathNode* find(const PathNode& at, const c10::OperatorHandle& op, CallArguments arguments,
                                      TensorTable& table, CallNumbers& numbers);
  /// Adds a composite operator whose steps stand behind `at`; no more than a few there.
  void add(PathNode& at, Shortcut shortcut);
  /// Adds a backward pass whose steps stand behind `at`; null where there are a few already.
  const KnownBackward* add(PathNode& at, KnownBackward pass);
  /// An operator has thrown behind `at`, or has not this time: it is no step, and the program may go on.
  void note_throw(const PathNode& at, const c10::OperatorHandle& op, bool threw);
  /// True where it did the last time.
  [[nodiscard]] bool throws(const PathNode& at, const c10::OperatorHandle& op);
  /// The step from which a call behind `at` differs in whole numbers alone: one there, or the one behind `beside`, in
  /// an older recording that the program has followed so far but for such numbers. Null where there is none. `key` are
  /// the call's arguments, of which it has met `taken` first.
  [[nodiscard]] const PathNode* find_other_integers(const PathNode& at, const c10::OperatorHandle& op,
                                                    const CallKey& key, std::span<const TraceValue* const> taken,
                                                    const PathNode* beside);
  /// True where such a call was found.
  [[nodiscard]] bool has_other_integers(const PathNode& at, const c10::OperatorHandle& op);
  /// True for a call behind `at` that differs from several steps there only in where what it meets lies in memory that
  /// was met before. `placed`: it takes a view whose place is known to differ, so that no step has to tell.
  [[nodiscard]] bool finds_other_places(const PathNode& at, const c10::OperatorHandle& op, const CallKey& key,
                                        std::span<const TraceValue* const> taken, bool placed);
  /// True where such a call was found.
  [[nodiscard]] bool has_other_places(const PathNode& at, const c10::OperatorHandle& op);
  /// The first node behind `at` whose step calls this operator; null where there is none.
  [[nodiscard]] static const PathNode* first_call_of(const PathNode& at, const c10::OperatorHandle& op);
  /// What its paths have in common but for sizes.
  [[nodiscard]] PathFamilies& families() { return *families_; }
  [[nodiscard]] size_t size() const { return size_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  std::deque<PathNode> nodes_;  ///< stay where they are
  std::deque<Shortcut> shortcuts_;
  std::deque<KnownBackward> backward_;
  /// Calls behind some nodes.
  struct Calls {
    std::vector<std::pair<const PathNode*, c10::OperatorHandle>> all;
    std::atomic<bool> any{false};
  };
  void note(Calls& calls, const PathNode& at, const c10::OperatorHandle& op);
  [[nodiscard]] bool holds(const Calls& calls, const PathNode& at, const c10::OperatorHandle& op);

  Calls threw_, other_integers_, other_places_;
  std::atomic<size_t> size_{0};
  std::unique_ptr<PathFamilies> families_;
};

/// The steps that lead to a node, in order.
[[nodiscard]] std::vector<const PathNode*> steps_to(const PathNode& node);

/// Those that lead from one node to another. Nothing where one of them draws, may refuse its data, counts from the
/// beginning of a storage that was there before, or takes numbers that differ from call to call. The table knows what
/// they take.
[[nodiscard]] std::optional<std::vector<const PathNode*>> plain_steps_between(const PathNode& begin,
                                                                              const PathNode& end,
                                                                              const TensorTable& table);

}  // namespace sinter::frontend
