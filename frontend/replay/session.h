#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/replay/call_log.h"
#include "frontend/replay/compiled_path.h"
#include "frontend/replay/draw_log.h"
#include "frontend/replay/findings.h"
#include "frontend/replay/node_log.h"
#include "frontend/replay/stand_in.h"
#include "frontend/replay/surroundings.h"
#include "frontend/replay/undo_log.h"
#include "frontend/replay/way.h"
#include "frontend/torch/backward_graph.h"
#include "frontend/torch/call_argument.h"
#include "frontend/trace/call_key.h"
#include "frontend/trace/path_tree.h"
#include "frontend/trace/tensor_table.h"

namespace sinter::frontend {

/// What the sessions of one function share: the trees of recorded segments, and who compiles them. Thread-safe.
class PathLibrary {
 public:
  virtual ~PathLibrary() = default;
  [[nodiscard]] virtual const OpTraits& traits(const c10::OperatorHandle& op) = 0;
  /// The tree of segments that run under these settings.
  [[nodiscard]] virtual std::shared_ptr<PathTree> tree(const Modes& settings) = 0;
  [[nodiscard]] virtual LentMemory& lent_memory() = 0;
  /// Where a call may keep its table, and where another one may keep it later.
  [[nodiscard]] virtual TensorTable::Room take_room() = 0;
  virtual void keep_room(TensorTable::Room room) = 0;

  /// A segment that was matched to its end.
  struct Matched {
    PathNode& end;
    const std::shared_ptr<PathTree>& tree;
    std::span<const TraceMemoryId> escaped;
    std::span<const LiveNumber> numbers;
    std::string_view reason;  ///< why it ends here; empty where the program has left it
    const TensorTable& table;
    std::span<const c10::StorageImpl* const> arguments;  ///< where those of the call lie
  };
  /// What computes it; null where it is not compiled, and will not be for now.
  [[nodiscard]] virtual std::shared_ptr<CompiledPath> compiled(const Matched& segment, News& news) = 0;
  /// What computes it threw, and its operators one by one did not; after a few times it is compiled no more. Throws
  /// InternalError under Options::strict.
  virtual void note_failed_run(const Matched& segment, const std::string& error, News& news) = 0;
  /// False while nothing more is to be recorded.
  [[nodiscard]] virtual bool may_record() const = 0;
  /// Recording steps, or matching them in vain, has taken so long beside what eager takes.
  virtual void note_recording(double seconds) = 0;
  /// A recorded segment ended here, and these memories outlived it.
  virtual void note_end(PathTree& tree, PathNode& end, std::span<const TraceMemoryId> escaped,
                        std::string_view reason) = 0;
  /// Adds what follows behind a place in a call that takes these tensors next, where recordings for other sizes tell.
  /// False where they do not.
  [[nodiscard]] virtual bool grow(PathTree& tree, PathNode& at, const c10::OperatorHandle& op,
                                  std::span<const TraceValue* const> taken, std::span<const int64_t> vouched) = 0;
  /// An operator gave what no segment can give: its calls are steps of none from here on.
  virtual void exclude(const c10::OperatorHandle& op) = 0;
  /// Found in this call. The first throws Refused under Options::fullgraph.
  virtual void note(GraphBreak reason, News& news) = 0;
  virtual void note(Recompilation divergence, News& news) = 0;
  /// The path of the module that a tensor belongs to; empty where none is known.
  [[nodiscard]] virtual std::string module_of(const at::Tensor& tensor) const = 0;
};

/// One call of a compiled function: its host code runs, and the session answers the operators that it calls. Those that
/// were recorded before are matched and given stand-ins, whose data a compiled segment computes when it is needed; the
/// others run, and are recorded. Lives in thread-local state that LibTorch carries to the threads it starts itself, so
/// all of them find it; thread-safe.
class Session : public c10::DebugInfoBase {
 public:
  /// What is known of a call before it runs.
  struct Setup {
    bool can_take_back = false;                           ///< what it writes
    std::vector<const c10::StorageImpl*> arguments = {};  ///< where they lie, as far as the library asks
    std::vector<const c10::StorageImpl*> lent = {};       ///< where those lie whose memory is lent
    std::vector<int64_t> vouched = {};                    ///< sizes that the program treats as it treats others
    bool logs = false;                                    ///< what the call does is asked for afterwards
  };

  Session(std::shared_ptr<PathLibrary> library, Setup setup)
      : library_(std::move(library)),
        setup_(std::move(setup)),
        undo_(setup_.can_take_back ? std::make_optional<UndoLog>() : std::nullopt),
        log_(setup_.logs ? std::make_optional<CallLog>() : std::nullopt),
        lent_(library_->lent_memory(), setup_.lent),
        table_(lent_, library_->take_room()) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() override { library_->keep_room(std::move(table_).take_room()); }

  /// What an operator gives that is answered, in the order of its schema.
  using Answer = c10::SmallVector<c10::IValue, 2>;
  /// New memory of an answer that has no tensor yet. The table holds memories weakly.
  using FreshStorages = c10::SmallVector<std::pair<TraceMemoryId, c10::Storage>, 2>;
  /// Answers an operator that is a step behind the last one, without boxing its call; false where it is none, or the
  /// call is logged: then it comes to `call`.
  [[nodiscard]] bool answer(const c10::OperatorHandle& op, CallArguments arguments, Answer& answer);
  /// The same before autograd sees it; where it is false the call comes to `call_above_autograd`.
  [[nodiscard]] bool answer_above_autograd(const c10::OperatorHandle& op, c10::DispatchKeySet below,
                                           CallArguments arguments, Answer& answer);
  /// Answers an operator. `below` are the keys of the kernels under the hook.
  void call(const c10::OperatorHandle& op, c10::DispatchKeySet below, torch::jit::Stack* stack);
  /// Answers an operator before autograd sees it, while gradients are off; `below` are the keys under that hook. What
  /// it cannot answer there goes on to them, and comes to `call`.
  void call_above_autograd(const c10::OperatorHandle& op, c10::DispatchKeySet below, torch::jit::Stack* stack);
  /// Answers a pass of autograd's engine whose steps are known, or has the engine run it, which calls operators.
  void backward(const BackwardCall& call, const std::function<void()>& run);
  /// Runs an operator that writes at once, with all that it calls.
  void call_whole(const c10::OperatorHandle& op, c10::DispatchKeySet below, torch::jit::Stack* stack);
  /// Sees to it that these arguments have their data.
  void wait_for(c10::ArrayRef<c10::IValue> arguments);
  /// Sees to it that everything that gives, reads or writes the memory of a tensor is done.
  void wait_for_memory_of(const at::Tensor& tensor);
  /// Does all work that is left, so that every tensor has its data. Throws what operators throw.
  void finish();
  /// Does the work that is left and takes back what it wrote and drew: the program did not get its memory, and runs
  /// again, as it is. What it has kept of what was computed has its data then, and `kept` closes it: it is not what
  /// eager finds there.
  void begin_again(ClosedStorages& kept);
  /// Forgets the work that is left, and takes back what was written and drawn.
  void take_back();

  /// What became of the call.
  struct Account {
    int64_t replayed = 0;     ///< segments that ran compiled
    int64_t at_once = 0;      ///< operators that are steps of none
    int64_t recorded = 0;     ///< steps that ran and were recorded
    int64_t interpreted = 0;  ///< segments whose steps ran one by one
    int64_t passes = 0;       ///< backward passes that were answered without autograd's engine
    bool cut_off = false;     ///< something new came, and was not recorded
    int64_t segments = 0;     ///< that have ended
    bool wrote = false;       ///< something that was there before the call
  };
  [[nodiscard]] const Account& account() const { return account_; }
  /// What the call did; null where nobody asked for it. Once it is over.
  [[nodiscard]] const CallLog* log() const { return log_ ? &*log_ : nullptr; }
  /// Notes a break of this call. Throws Refused under Options::fullgraph.
  void note(GraphBreak reason) { library_->note(std::move(reason), news_); }
  /// Module path and place of the operator that threw last; or empty.
  [[nodiscard]] const std::string& failed_at() const { return failed_at_; }
  /// Hands over what the call has found, once it is over.
  void move_news_to(News& news) { news = std::exchange(news_, {}); }

 private:
  void run_now(const c10::OperatorHandle& op, const OpTraits& traits, c10::DispatchKeySet below,
               torch::jit::Stack* stack);
  [[nodiscard]] bool can_be_a_step_of_the_next_segment(const OpTraits& traits, c10::ArrayRef<c10::IValue> arguments);
  void make_view(const c10::OperatorHandle& op, const OpTraits& traits, c10::DispatchKeySet below,
                 torch::jit::Stack* stack);
  [[nodiscard]] bool takes_placed_view(c10::ArrayRef<c10::IValue> arguments) const;
  void note_lent(c10::ArrayRef<c10::IValue> arguments);
  void run_what_threw(const c10::OperatorHandle& op, const OpTraits& traits, c10::DispatchKeySet below,
                      torch::jit::Stack* stack);
  [[nodiscard]] bool tells_breaks_of(const OpTraits& traits) const;
  void note_break(const OpTraits& traits, c10::ArrayRef<c10::IValue> arguments, std::optional<GraphBreak> reason);
  void note_divergence(const PathNode& branch);
  [[nodiscard]] std::string module_of(c10::ArrayRef<c10::IValue> arguments) const;
  [[nodiscard]] std::string place_of(c10::ArrayRef<c10::IValue> arguments) const;
  void keep_what_is_written(const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments);
  void keep_what_was_matched(UndoLog& log) const;
  void begin_segment();
  /// Whether an answer does autograd's part as well.
  enum class Part : uint8_t { kernels, kernels_and_autograds };
  [[nodiscard]] bool may_match(const Step& candidate);
  [[nodiscard]] bool answer_known(const c10::OperatorHandle& op, Part part, CallArguments arguments, Answer& answer);
  [[nodiscard]] bool answer_known(const c10::OperatorHandle& op, torch::jit::Stack* stack);
  [[nodiscard]] bool match(const c10::OperatorHandle& op, CallArguments arguments, Answer& answer);
  void step(const c10::OperatorHandle& op, const OpTraits& traits, c10::DispatchKeySet below, torch::jit::Stack* stack);
  void go_on(PathNode& node, const CallNumbers& numbers, Part part, CallArguments arguments, Answer& answer);
  void go_to(PathNode& node, PathNode& first);
  void expect_what_follows(PathNode& first);
  void start_early();
  [[nodiscard]] bool match_above_autograd(const c10::OperatorHandle& op, c10::DispatchKeySet below,
                                          CallArguments arguments, Answer& answer);
  [[nodiscard]] bool answer_by(const Shortcut& shortcut, CallArguments arguments, Answer& answer);
  void open(const c10::OperatorHandle& op, c10::DispatchKeySet below, torch::jit::Stack* stack,
            std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool can_be_given(const Returned& item, const at::Tensor& result, const Shortcut& shortcut,
                                  c10::ArrayRef<c10::IValue> arguments, const PathNode& begin) const;
  void note_shortcut(PathNode& begin, Shortcut shortcut, c10::ArrayRef<c10::IValue> arguments,
                     c10::ArrayRef<c10::IValue> results);
  void record(const c10::OperatorHandle& op, const OpTraits& traits, CallInWords call, c10::DispatchKeySet below,
              torch::jit::Stack* stack);
  /// Whether everything that was called since was answered by known steps.
  struct Since {
    PathNode* begin = nullptr;
    std::shared_ptr<PathTree> tree;
    uint64_t unanswered = 0;
    int64_t segments = 0;
  };
  [[nodiscard]] Since now() const { return {at_, tree_, unanswered_, account_.segments}; }
  [[nodiscard]] bool all_was_answered(const Since& since) const;
  [[nodiscard]] FreshStorages stand_ins_for(std::span<const TraceMemoryId> memories);
  void go_along(std::span<const PathNode* const> steps, SettingSet settings);
  void note_other(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);
  [[nodiscard]] bool answer_by(const KnownBackward& pass, const BackwardCall& call, const BackwardGraph& graph);
  [[nodiscard]] bool answer_backward(const BackwardCall& call, const BackwardGraph& graph);
  [[nodiscard]] const KnownBackward* note_backward(PathNode& begin, const BackwardCall& call,
                                                   const BackwardGraph& graph, std::span<const HeldGradient> before);
  [[nodiscard]] bool note_gradients(const PathNode& begin, const BackwardGraph& graph,
                                    std::span<const HeldGradient> before, KnownBackward& pass);
  [[nodiscard]] c10::IValue returned(const Returned& item, CallArguments arguments, FreshStorages& fresh);
  [[nodiscard]] at::Tensor tensor_of(const Returned& item, CallArguments arguments, FreshStorages& fresh);
  void note_writes(const Step& step);

  /// Ends the segment: what was matched runs, and the tensors that are still there get their data.
  void synchronize(std::string_view reason);
  void end_segment();
  [[nodiscard]] std::vector<TraceMemoryId> escaped() const;
  void run_matched(std::string_view reason);
  void run_compiled(const std::shared_ptr<CompiledPath>& path, const PathLibrary::Matched& segment,
                    const DrawLog::WhileItRuns& draws);
  void note_what_followed(const std::shared_ptr<CompiledPath>& path);
  void run_transparent(const c10::OperatorHandle& op, const OpFacts& facts, c10::DispatchKeySet below,
                       torch::jit::Stack* stack);
  void refuse_in_log(std::string_view what) {
    if (log_) log_->refuse(std::string(what));
  }
  /// Does the work that is left; the rest of the call runs as it is.
  void run_rest_at_once(std::string_view reason);
  void interpret();
  void interpret(const PathNode& node, std::vector<c10::Storage>& storages);
  [[nodiscard]] std::vector<std::vector<TraceMemoryId>> last_uses_of(std::span<const PathNode* const> steps);
  void give(std::vector<c10::Storage>& storages);

  static constexpr uint32_t nothing_early = std::numeric_limits<uint32_t>::max();

  const std::shared_ptr<PathLibrary> library_;
  const Setup setup_;
  std::mutex mutex_;
  Account account_;
  News news_;
  std::string failed_at_;
  std::optional<UndoLog> undo_;
  std::optional<CallLog> log_;
  bool off_ = false;
  uint64_t unanswered_ = 0;  ///< calls that no known step has answered

  // The segment that is under way; none where at_ is null.
  PathNode* at_ = nullptr;
  std::shared_ptr<PathTree> tree_;
  PathNode* first_ = nullptr;           ///< its first step
  std::unique_ptr<EarlyRun> early_;     ///< of the segment that is expected; null where none is
  uint32_t early_due_ = nothing_early;  ///< it is behind so many steps
  bool recording_ = false;              ///< its steps have run; else they are matched and have not
  const PathNode* beside_ = nullptr;    ///< where an older recording stands that differs in whole numbers; or null
  using Place = std::pair<const c10::StorageImpl*, int64_t>;  ///< and the offset in it
  std::vector<Place> placed_;                                 ///< of views at places that differ from call to call
  bool settings_matter_ = false;                              ///< to one of them
  std::optional<KernelSurroundings> surroundings_;
  LentInCall lent_;
  NodeLog nodes_;
  TensorTable table_;
  std::vector<LiveNumber> numbers_;
  DrawLog draws_;
  ClosedStorages closed_;  ///< that steps write which have not run
};

/// Puts what an answered operator gives where its arguments stand.
void replace_arguments(const c10::OperatorHandle& op, Session::Answer& answer, torch::jit::Stack* stack);

/// That of the calling thread, or of the thread whose LibTorch state it carries; null where there is none.
[[nodiscard]] Session* current_session();

/// Calls `run` with the session as the calling thread's.
void with_session(const std::shared_ptr<Session>& session, const std::function<void()>& run);

}  // namespace sinter::frontend
