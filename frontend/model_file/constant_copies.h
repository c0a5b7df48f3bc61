#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "frontend/model_file/operator_call.h"

namespace sinter::frontend {

/// A step of a graph as `constant_copies` sees it.
struct StepView {
  const OperatorCall* call = nullptr;  ///< null: no call of an operator
  std::span<const ExportedArgument> outputs;
  std::vector<Slot> reads;
  bool calls_graphs = false;  ///< a higher-order operator, whose graphs may write to what it reads
};

/// The steps, in order, that copy to a device what depends on no input, and those that make what they copy, writes to
/// it included. Nothing writes to what the copies give, and the graph does not give it away: it may be the same tensor
/// in every call. Source: constant folding.
[[nodiscard]] std::vector<size_t> steps_of_constant_copies(std::span<const StepView> steps,
                                                           std::span<const ExportedArgument> results, size_t slots);

/// Those of `constant` that a call has no use for where it is given the values of `kept`.
[[nodiscard]] std::vector<size_t> steps_without_use(std::span<const StepView> steps, std::span<const size_t> constant,
                                                    std::span<const Slot> kept, size_t slots);

struct DeviceCopy {
  Slot from, to;
};
/// The values of a call that brings a tensor to a device it names.
[[nodiscard]] std::optional<DeviceCopy> copied_by(const OperatorCall& call, std::span<const ExportedArgument> outputs);

}  // namespace sinter::frontend
