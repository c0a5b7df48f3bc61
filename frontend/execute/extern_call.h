#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <span>
#include <vector>

#include "compiler/plan.h"

namespace sinter::frontend {

/// oneDNN's recurrent layers make their last result, the workspace that backward reads, in grad mode alone. True for a
/// call of theirs that gives so many results; all others run without it.
[[nodiscard]] bool needs_grad_mode(const c10::OperatorHandle& op, size_t results);

/// An ATen call with its operator looked up and all its constant arguments boxed. Immutable, thread-safe.
class PreparedCall {
 public:
  /// Throws InternalError when the operator is not registered or an argument does not fit its schema.
  PreparedCall(const ExternCall& call, std::vector<c10::IValue> opaques);

  /// Runs the operator below autograd and autocast. `buffers` are the tensors of the call, by buffer id. On return
  /// `stack` holds the results.
  void run(const std::vector<at::Tensor>& buffers, torch::jit::Stack& stack) const;

 private:
  struct Slot {
    size_t position;
    uint32_t buffer;
  };

  ExternCall call_;
  std::vector<c10::IValue> opaques_;
  c10::OperatorHandle op_;
  bool for_backward_;                   ///< the kernel is asked for what backward will need
  bool wants_aligned_;                  ///< its kernels do not look at the addresses of tensors
  std::vector<c10::IValue> arguments_;  ///< in schema order; None where a tensor of the call goes
  std::vector<Slot> tensors_;           ///< arguments that are one tensor
  std::vector<Slot> numbers_;           ///< 0-dim CPU tensors that stand for a number in the schema
  std::vector<size_t> lists_;           ///< positions of arguments that hold tensors in lists
};

}  // namespace sinter::frontend
