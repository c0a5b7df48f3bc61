#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <cstdint>

#include "frontend/torch/backward_graph.h"
#include "frontend/trace/known_backward.h"
#include "frontend/trace/tensor_table.h"

namespace sinter::frontend {

/// What is known of the nodes that autograd makes in a segment, and of the passes that have gone through them. Belongs
/// to the thread that has made it: nodes of others are of another origin. Not thread-safe.
class NodeLog {
 public:
  /// A step is answered, behind autograd, which has made its nodes, if any. `takes_numbers`: some that differ from call
  /// to call.
  void note_step(bool takes_numbers);
  /// An operator runs that is no step, behind so many steps. Nodes that were made since the last one may be its own:
  /// what they do follows from the call, which passes are known by, or else is not known.
  void note_other(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments, uint32_t steps,
                  const TensorTable& table);
  /// A pass begins that may free what nodes save, or add nodes; it is none of the known ones until `note_pass`.
  void begin_pass() { passes_are_known_ = false; }
  void note_pass(const KnownBackward& pass);
  /// The segment has ended. Nodes that are there belong to none from here on.
  void clear();

  /// False where what nodes do does not follow from what is compared.
  [[nodiscard]] bool tells() const { return passes_are_known_ && !takes_numbers_; }
  [[nodiscard]] NodeOrigin origin() const { return origin_; }
  [[nodiscard]] const NodeHistory& history() const { return history_; }

 private:
  NodeOrigin origin_ = NodeOrigin::here();  ///< of nodes whose operators are known
  uint64_t next_ = 0;                       ///< the number behind the last of them
  NodeHistory history_;
  bool passes_are_known_ = true;
  bool takes_numbers_ = false;
};

}  // namespace sinter::frontend
