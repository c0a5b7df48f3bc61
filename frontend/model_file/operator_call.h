#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>
#include <span>
#include <vector>

#include "frontend/model_file/exported_graph.h"

namespace sinter::frontend {

/// Values of a graph that is running, by slot.
using SlotValues = std::vector<c10::IValue>;

/// The device and the dtype that constants of a file name, and those that stand for them since the model was moved or
/// converted.
struct ModelMove {
  at::Device from{at::kCPU};
  at::Device to{at::kCPU};
  std::optional<at::ScalarType> from_dtype;  ///< that all of its parameters had
  std::optional<at::ScalarType> to_dtype;    ///< a wider one
};

/// One node bound to an operator of the dispatcher: arguments in the schema's order, defaults filled in.
class OperatorCall {
 public:
  /// Throws std::invalid_argument where the node's arguments are not those of the schema.
  OperatorCall(const ExportedNode& node, c10::OperatorHandle op);

  [[nodiscard]] const c10::OperatorHandle& op() const { return op_; }
  [[nodiscard]] const c10::FunctionSchema& schema() const { return op_.schema(); }
  /// In the schema's order.
  [[nodiscard]] const std::vector<ExportedArgument>& arguments() const { return arguments_; }
  /// Results in the schema's order. Exceptions of the operator pass.
  [[nodiscard]] torch::jit::Stack run(const SlotValues& values, const ModelMove& move) const;

 private:
  c10::OperatorHandle op_;
  std::vector<ExportedArgument> arguments_;
};

/// What a number or a list of a file is where an operator wants `type`: integers become floats or wrapped-number
/// tensors, as Python's bindings convert them. `count`: of "int[2]", where one number stands for a list; or nothing.
[[nodiscard]] c10::IValue evaluate(const ExportedArgument& argument, const c10::Type& type,
                                   std::optional<int32_t> count, const SlotValues& values, const ModelMove& move);

}  // namespace sinter::frontend
