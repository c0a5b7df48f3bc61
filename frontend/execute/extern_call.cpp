#include "frontend/execute/extern_call.h"

#include "compiler/support/errors.h"
#include "frontend/execute/below_autograd.h"
#include "frontend/torch/convert.h"
#include "frontend/torch/tensor_memory.h"

namespace sinter::frontend {
namespace {

c10::OperatorHandle find(const std::string& op) {
  const auto dot = op.find('.');
  const auto name = op.substr(0, dot);
  const auto overload = dot == std::string::npos ? std::string() : op.substr(dot + 1);
  const auto found = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!found) throw InternalError("extern call", "LibTorch has no operator " + op);
  return *found;
}

/// `Scalar` or `Scalar?`.
bool takes_number(const c10::Argument& argument) {
  const c10::TypePtr type = argument.real_type();
  const auto optional = type->cast<c10::OptionalType>();
  return (optional ? optional->getElementType() : type)->kind() == c10::TypeKind::NumberType;
}

/// LibTorch's attention kernels load 16 bytes at a time wherever strides allow it, and do not look at addresses. What
/// eager gives them begins memory of its own; a compiled call may give them a part of some: x * 1 is x.
bool loads_unchecked(const c10::OperatorHandle& op) {
  const std::string_view name = op.operator_name().name;
  return name.starts_with("aten::_") && name.find("_attention") != std::string_view::npos;
}

/// The same values where 16 bytes can be loaded at once.
at::Tensor aligned(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda()) return tensor;
  return address_of(*tensor.unsafeGetTensorImpl()) % 16 == 0 ? tensor : tensor.clone();
}

at::Tensor constants_only(ir::ValueId /*value*/) { return {}; }

}  // namespace

bool needs_grad_mode(const c10::OperatorHandle& op, size_t results) {
  return op.operator_name().name == "aten::mkldnn_rnn_layer" && results == op.schema().returns().size();
}

PreparedCall::PreparedCall(const ExternCall& call, std::vector<c10::IValue> opaques)
    : call_(call),
      opaques_(std::move(opaques)),
      op_(find(call.op)),
      for_backward_(needs_grad_mode(op_, call.results.size())),
      wants_aligned_(loads_unchecked(op_)) {
  const auto& schema = op_.schema().arguments();
  if (schema.size() != call_.args.size()) {
    throw InternalError("extern call", call_.op + " has another number of arguments than its schema");
  }
  for (size_t i = 0; i < schema.size(); ++i) {
    const auto& arg = call_.args[i];
    if (const auto* value = arg.value()) {
      (takes_number(schema[i]) ? numbers_ : tensors_).push_back({i, value->index});
      arguments_.emplace_back();
    } else if (ir::holds_value(arg)) {
      lists_.push_back(i);
      arguments_.emplace_back();
    } else {
      arguments_.push_back(ivalue_of(arg, *schema[i].real_type(), constants_only, opaques_));
    }
  }
}

void PreparedCall::run(const std::vector<at::Tensor>& buffers, torch::jit::Stack& stack) const {
  stack.assign(arguments_.begin(), arguments_.end());
  for (const auto& slot : tensors_) stack[slot.position] = buffers[slot.buffer];
  for (const auto& slot : numbers_) stack[slot.position] = buffers[slot.buffer].item();
  for (const auto position : lists_) {
    stack[position] = ivalue_of(
        call_.args[position], *op_.schema().arguments()[position].real_type(),
        [&buffers](ir::ValueId value) { return buffers[value.index]; }, opaques_);
  }
  const BelowAutograd below(for_backward_);
  if (wants_aligned_) {
    for (const auto& slot : tensors_) stack[slot.position] = aligned(buffers[slot.buffer]);
  }
  op_.callBoxed(stack);
}

}  // namespace sinter::frontend
