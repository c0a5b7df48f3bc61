#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/profile/module_table.h"
#include "frontend/profile/operator_work.h"
#include "frontend/profile/step_places.h"
#include "frontend/torch/program_place.h"
#include "frontend/torch/stated_place.h"
#include "runtime/ranges.h"

namespace sinter::frontend {

/// A node of autograd's graph by the thread that made it and its number there.
struct NodeNumber {
  uint64_t thread = 0;
  uint64_t number = 0;

  bool operator==(const NodeNumber&) const = default;
};

/// A node of autograd's graph that runs.
struct RunningNode {
  std::string name;                     ///< "AddmmBackward0"
  std::optional<NodeNumber> made_as;    ///< none for nodes without a forward operator
  ModuleIndex accumulates = no_module;  ///< owner of the parameter whose gradient it adds up
};

/// One operator, or one step of a compiled segment. Times are nanoseconds of a monotonic clock.
struct LoggedOperator {
  std::string name;
  int64_t step = 0;
  int64_t start = 0;
  int64_t end = 0;
  int64_t nested = 0;  ///< of end - start: in other logged operators
  uint64_t thread = 0;
  uint64_t first_node = 0;  ///< nodes that were made meanwhile have numbers of [first_node, end_node) of `thread`
  uint64_t end_node = 0;
  std::optional<RunningNode> node;   ///< that called it, in a backward pass
  bool gradients = false;            ///< grad mode was on
  TensorOwner owner;                 ///< of an argument; the innermost common module of several
  bool updates = false;              ///< it writes a parameter, or works on gradients or states of optimizers
  bool compiled = false;             ///< a compiled segment or a step of one
  std::vector<std::string> modules;  ///< of such a step: of all that went in
  std::vector<std::string> sources;
  std::optional<StatedPlace> stated;
  OperatorWork work;
  Stack stack;  ///< of operators outside of backward passes and optimizers
};

/// Stands before a function's name in the log: a run of a compiled segment, whose steps are operators of their own.
inline constexpr std::string_view segment_prefix = "compiled segment ";

/// What a thread is inside of.
struct OpenCall {
  enum class Kind : uint8_t { operation, step, segment };
  Kind kind;
  int64_t position;  ///< in the log; -1: not kept
  int64_t start;     ///< nanoseconds
  int64_t nested = 0;
  OperatorWork work = {};
  bool composed = false;  ///< the work of operators that it calls is its own
};

/// Who else is told. Called in the operator's thread, must not throw, nor call operators.
struct LogListener {
  std::function<void(int64_t position)> begin;
  std::function<void()> end;
};

/// Every operator that threads hand to LibTorch's dispatcher while it lives, those that operators call left out, and
/// the steps of compiled segments. Thread-safe. One at a time in a process: the constructor throws UserError for a
/// second one.
class OperatorLog final : public runtime::Ranges {
 public:
  /// `places` says where operators stand, for plans that are recorded meanwhile; null: nobody does. Outlives the log.
  OperatorLog(ModuleTable& modules, LogListener listener, StepPlaces* places = nullptr);
  ~OperatorLog() override;
  OperatorLog(const OperatorLog&) = delete;
  OperatorLog& operator=(const OperatorLog&) = delete;

  /// The step that operators belong to from now on. Before it is called nothing is kept; owners are looked up always.
  /// Room is made for `steps_left` steps like the one that ends here.
  void begin_step(int64_t step, int64_t steps_left);
  /// From now on nothing is kept.
  void end_step();

  /// Operators in the order in which they began. Not while any runs.
  [[nodiscard]] std::vector<LoggedOperator> take();
  /// Position of the operator that the calling thread runs; -1: none.
  [[nodiscard]] static int64_t running();
  /// The device of the first tensor on a GPU that was seen, else the CPU.
  [[nodiscard]] at::Device device() const;

  void push(const std::string& text) override;
  void push(const KernelSource& kernel) override;
  void push(const ExternCall& call) override;
  void pop() noexcept override;

 private:
  friend struct LogCallbacks;
  friend struct EnteredOperator;

  const WorkTraits& work_traits(const c10::OperatorName& name);
  int64_t open(LoggedOperator op);
  void close(const OpenCall& call, int64_t end);
  void note_arguments(std::span<const c10::IValue> arguments, LoggedOperator& op);
  const StatedPlace* next_place(const LoggedOperator& op);
  void note_results(std::span<const c10::IValue> results, ModuleIndex module);

  mutable std::mutex mutex_;
  ModuleTable& modules_;
  LogListener listener_;
  StepPlaces* places_;
  WorkRules work_rules_;
  std::vector<LoggedOperator> operators_;
  std::optional<int64_t> step_;
  int64_t seen_ = 0;  ///< operators since the last step began
  at::Device device_{at::kCPU};
  bool saw_node_ = false;  ///< gradients may have changed since owners were refreshed
  uint64_t callback_ = 0;
};

}  // namespace sinter::frontend
