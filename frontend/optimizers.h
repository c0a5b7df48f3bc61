#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/support/report.h"
#include "frontend/capture.h"
#include "frontend/difference.h"

namespace torch::optim {
class Optimizer;
}

/// What LibTorch's optimizers keep outside of tensors: options and step counters. Their steps compute numbers from them
/// on the host, which stand in a trace as arguments of operators; a replay computes them anew.
namespace sinter::frontend {

enum class OptimizerKind : uint8_t { sgd, adam, adamw, other };

/// A number that a step computes from the learning rate and the step counter, in double, as LibTorch 2.11 writes it.
enum class Formula : uint8_t {
  negative_lr,         ///< SGD: -1 * lr
  negative_step_size,  ///< Adam, AdamW: -(lr / (1 - pow(beta1, step)))
  root_of_correction,  ///< Adam, AdamW: sqrt(1 - pow(beta2, step))
  decay,               ///< AdamW: 1 - lr * weight_decay
};

/// One parameter of an optimizer, at one time.
struct ParameterFacts {
  const c10::TensorImpl* tensor = nullptr;
  bool has_state = false;
  int64_t step = 0;  ///< Adam and AdamW
};

/// One group of parameters, at one time.
struct GroupFacts {
  double lr = 0;
  std::vector<double> options;  ///< all but the learning rate, by kind
  std::vector<ParameterFacts> parameters;
};

/// What an optimizer held at one time.
struct OptimizerFacts {
  torch::optim::Optimizer* optimizer = nullptr;
  OptimizerKind kind = OptimizerKind::other;
  std::string type;  ///< "Adam"
  std::vector<GroupFacts> groups;

  static OptimizerFacts of(torch::optim::Optimizer& optimizer);
};
[[nodiscard]] std::vector<OptimizerFacts> facts_of(std::span<torch::optim::Optimizer* const> optimizers);

/// Every parameter of the optimizers.
[[nodiscard]] std::vector<WeakTensor> parameters_of(std::span<torch::optim::Optimizer* const> optimizers);

/// A number in a trace that comes from an optimizer.
struct OptimizerNumber {
  NumberPlace place;
  uint32_t optimizer = 0, group = 0, parameter = 0;  ///< positions
  Formula formula{};
  uint32_t content = 0;  ///< of the trace, once bound: where the plan reads it

  /// True when both are the same number of the same optimizer, wherever they stand.
  [[nodiscard]] bool computes(const OptimizerNumber& other) const {
    return optimizer == other.optimizer && group == other.group && parameter == other.parameter &&
           formula == other.formula;
  }
};

/// What one recorded call did with the optimizers.
struct OptimizerUse {
  std::vector<OptimizerNumber> numbers;
  std::optional<GraphBreak> graph_break;
};

/// Finds out what a recorded call did, from what the optimizers held before it and hold after it.
[[nodiscard]] OptimizerUse optimizer_use(const Trace& trace, std::span<const OptimizerFacts> before,
                                         std::span<const OptimizerFacts> after);

/// The value of a number in the call that begins with these facts.
[[nodiscard]] double value_of(const OptimizerNumber& number, std::span<const OptimizerFacts> before);

/// The optimizers an entry relies on: a guard, the source of its numbers, and the counters its replays advance.
/// Lives no longer than they do, and is thread-safe as they are: one step at a time.
class OptimizerLink {
 public:
  enum class Keep : uint8_t { used, all };
  /// Keeps the optimizers that a recorded call used, or all, by what they held before it and hold after it.
  void set(std::vector<OptimizerFacts> before, std::span<const OptimizerFacts> after,
           std::vector<OptimizerNumber> numbers, Keep keep = Keep::used);

  [[nodiscard]] const std::vector<OptimizerNumber>& numbers() const { return numbers_; }
  [[nodiscard]] bool is_number(const NumberPlace& place) const;
  /// The number that a content of the trace stands for; null for other contents.
  [[nodiscard]] const OptimizerNumber* number_of_content(uint32_t content) const;
  /// The contents of the trace that stand for numbers.
  [[nodiscard]] std::vector<uint32_t> contents() const;
  /// What the optimizers held before the recorded call.
  [[nodiscard]] std::span<const OptimizerFacts> before() const { return before_; }
  /// True when the guards of this one held before the call that the other one was recorded in.
  [[nodiscard]] bool held_before(const OptimizerLink& other) const;
  /// True when the recorded call made a step of an optimizer.
  [[nodiscard]] bool steps() const { return !used_.empty(); }
  /// True when the recorded call was the first step of an optimizer that keeps state for each parameter.
  [[nodiscard]] bool made_state() const { return made_state_; }
  /// True while options other than learning rates, parameters, and which of them have state are what they were.
  [[nodiscard]] bool holds() const;
  void misses(std::vector<GuardMiss>& out) const;
  void describe(std::vector<std::string>& words) const;

  /// Adds to the trace's contents one for each number, which replays fill in.
  void add_contents(Trace& trace);
  /// A graph of the trace with those contents where the numbers stand.
  [[nodiscard]] ir::Graph bind(ir::Graph graph, const Trace& trace) const;
  /// A number that differs between two recordings, or should, and is not what its optimizer makes of it; `before` is
  /// what the optimizers held before the second one.
  [[nodiscard]] std::optional<std::string> number_difference(const Trace& first,
                                                             std::span<const NumberDifference> differences,
                                                             std::span<const OptimizerFacts> before) const;

  /// Writes the numbers of the coming call where its plan reads them.
  void fill(std::span<const ContentSlot> contents) const;
  /// Counts the step that a replay made.
  void advance() const;

 private:
  struct Stepped {
    uint32_t optimizer;
    const c10::TensorImpl* parameter;
  };
  std::vector<OptimizerFacts> before_;
  std::vector<uint32_t> used_;  ///< positions in `before_`
  std::vector<Stepped> stepped_;
  std::vector<OptimizerNumber> numbers_;
  bool made_state_ = false;
};

}  // namespace sinter::frontend
