#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "frontend/model_file/constant_copies.h"
#include "frontend/model_file/exported_graph.h"
#include "frontend/model_file/number_ops.h"
#include "frontend/model_file/operator_call.h"
#include "frontend/torch/stated_place.h"

namespace sinter::frontend {

/// A graph of a `.pt2` file, bound to this LibTorch's operators and ready to run. Calls of `run` from several
/// threads are correct.
class GraphRunner {
 public:
  /// Throws UnknownOperators naming what cannot be bound.
  explicit GraphRunner(const ExportedGraph& graph);

  /// Makes copies of constants to another device now, which `run` would make in every call (a mask of zeros that is
  /// made on the host). To be called again after a move; not beside `run`.
  void keep_constants(const ModelMove& move);

  /// One value for each input of the graph (constants included, which are ignored), one for each of its outputs.
  /// Values are let go after their last use. Exceptions of operators pass.
  [[nodiscard]] std::vector<c10::IValue> run(std::vector<c10::IValue> inputs, const ModelMove& move) const;

 private:
  /// A size, stride or other number that is read off a tensor.
  struct TensorNumber {
    int64_t (*read)(const at::Tensor&, int64_t dim);
    ExportedArgument tensor, dim;
  };
  struct NumberCall {
    NumberOp op;
    std::vector<ExportedArgument> operands;
  };
  /// A number that must be true, as torch.export found it to be.
  struct Assertion {
    ExportedArgument condition;
    std::string message;
  };
  /// A higher-order operator: what to run around its graphs.
  struct HigherOrder {
    enum class Kind : uint8_t { cond, while_loop, set_grad_enabled, autocast };
    Kind kind;
    std::vector<ExportedArgument> arguments;  ///< those before the graphs
    std::vector<std::shared_ptr<const GraphRunner>> graphs;
    std::vector<ExportedArgument> operands;  ///< lists opened
  };
  struct Skip {};
  using Action = std::variant<Skip, OperatorCall, TensorNumber, NumberCall, Assertion, HigherOrder>;
  struct Step {
    Action action;
    std::vector<ExportedArgument> outputs;
    std::vector<Slot> dead;  ///< values that nothing needs after this step
    StatedPlace place;
    bool left_out = false;  ///< what it gives is kept, or nothing has a use for it
  };

  [[nodiscard]] static Action bind(const ExportedNode& node);
  [[nodiscard]] static Action bind_higher_order(const ExportedNode& node);
  template <class Visit>
  static void for_each_read(const Action& action, const Visit& visit);
  void mark_last_uses();
  [[nodiscard]] std::vector<StepView> views() const;
  /// Performs a step and puts its results where they belong.
  static void run(const Step& step, SlotValues& values, const ModelMove& move);
  /// Outside of what is recorded of this thread.
  void run_apart(std::span<const size_t> steps, SlotValues& values, const ModelMove& move) const;
  [[nodiscard]] static std::vector<c10::IValue> perform(const Action& action, const SlotValues& values,
                                                        const ModelMove& move);
  [[nodiscard]] static std::vector<c10::IValue> perform(const HigherOrder& call, const SlotValues& values,
                                                        const ModelMove& move);

  std::vector<Step> steps_;
  std::vector<ExportedArgument> inputs_, outputs_;
  size_t slots_ = 0;
  std::vector<std::pair<Slot, c10::IValue>> kept_;  ///< of steps that are left out
};

/// What a file needs and this LibTorch does not have: operators, or arguments of theirs.
class UnknownOperators : public std::exception {
 public:
  explicit UnknownOperators(std::vector<std::string> reasons) : reasons_(std::move(reasons)) {}
  [[nodiscard]] const std::vector<std::string>& reasons() const { return reasons_; }

 private:
  std::vector<std::string> reasons_;
};

}  // namespace sinter::frontend
