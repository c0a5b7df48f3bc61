#include "frontend/outputs.h"

#include <ATen/ops/alias.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/clone.h>

#include "compiler/ir/memory.h"
#include "compiler/support/errors.h"
#include "compiler/support/planted.h"
#include "frontend/read_as.h"
#include "frontend/tensor_memory.h"
#include "runtime/program.h"

namespace sinter::frontend {
namespace {

/// True where the memory that a buffer shows was there before the call.
bool is_owned_by_others(const Plan& plan, BufferId buffer, uint32_t own) {
  const Buffer& root = plan.buffers[runtime::root_of(plan, buffer).buffer.index];
  return (root.kind == BufferKind::input && root.index < own) || root.kind == BufferKind::state ||
         root.kind == BufferKind::content || root.kind == BufferKind::frozen;
}

/// A view without a history: results that take part in a graph of gradients are never replayed.
at::Tensor view(const at::Tensor& base, c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t offset,
                ir::Reading reading) {
  const at::Tensor plain = at::as_strided(base, sizes, strides, base.storage_offset() + offset);
  const at::Tensor seen = read_as(plain, reading);
  return seen.requires_grad() ? seen.detach() : seen;
}

}  // namespace

OutputRules::Rule OutputRules::rule_for(const Trace& trace, size_t index) {
  const ir::Graph& captured = trace.graph;
  const ir::ValueId as_is = trace.returned_as_is[index];
  const bool itself = as_is.valid();
  const ir::ValueId output = itself ? as_is : captured.outputs[index];
  Rule rule;
  if (!itself) rule.reading = ir::reading_of(captured, output);
  auto root = output;
  while (const auto& alias = captured.value(root).alias) {
    rule.offset += alias->offset;
    root = alias->base;
  }
  if (itself) {
    root = output;
    rule.offset = 0;
  }
  if (const auto* input = captured.producer(root).as<ir::Input>()) {
    rule.how = itself ? How::argument : How::argument_view;
    rule.index = input->index;
  } else if (const auto* state = captured.producer(root).as<ir::State>()) {
    rule.how = itself ? How::state : How::state_view;
    rule.index = state->index;
  } else {
    return rule;
  }
  rule.sizes = captured.type(output).static_sizes();
  rule.strides = captured.type(output).static_strides();
  return rule;
}

OutputRules::OutputRules(const Trace& captured, const Plan& plan, uint32_t own) {
  const auto& outputs = captured.graph.outputs;
  if (outputs.size() != plan.outputs.size()) {
    throw InternalError("outputs", "the plan has another number of outputs than the captured graph");
  }
  for (size_t i = 0; i < outputs.size(); ++i) rules_.push_back(rule_for(captured, plan, i, own));
}

OutputRules::Rule OutputRules::rule_for(const Trace& captured, const Plan& plan, size_t output, uint32_t own) {
  if (const uint32_t twin = captured.first_twin[output]; twin != output) return {.how = How::same, .index = twin};
  auto rule = rule_for(captured, output);
  if (rule.how != How::buffer) return rule;
  rule.index = plan.outputs[output].index;
  if (is_owned_by_others(plan, plan.outputs[output], own)) rule.how = How::copy;
  for (size_t i = 0; i < output; ++i) {
    if (plan.outputs[i] != plan.outputs[output]) continue;
    const auto& values = captured.graph.outputs;
    if (ir::memory_of(captured.graph, values[i]) == ir::memory_of(captured.graph, values[output])) {
      return {.how = How::alias, .index = static_cast<uint32_t>(i)};
    }
    rule.how = How::copy;  // computed once, but two tensors
  }
  return rule;
}

void OutputRules::collect(TorchFrame& frame, const detail::Flat& arguments, std::span<const StateSlot> states,
                          detail::Replay& replay) const {
  for (const auto& rule : rules_) {
    switch (rule.how) {
      case How::argument:
        replay.tensors.push_back(*arguments.tensors[rule.index]);
        break;
      case How::state:
        replay.tensors.push_back(lock(states[rule.index].tensor));
        break;
      case How::argument_view:
        replay.tensors.push_back(
            view(*arguments.tensors[rule.index], rule.sizes, rule.strides, rule.offset, rule.reading));
        if (planted(Bug::alias_missed)) replay.tensors.back() = at::clone(replay.tensors.back());
        break;
      case How::state_view:
        replay.tensors.push_back(
            view(lock(states[rule.index].tensor), rule.sizes, rule.strides, rule.offset, rule.reading));
        break;
      case How::buffer:
        replay.tensors.push_back(read_as(frame.tensor(BufferId{rule.index}), rule.reading));
        break;
      case How::copy:
        replay.tensors.push_back(at::clone(read_as(frame.tensor(BufferId{rule.index}), rule.reading)));
        break;
      case How::same:
        replay.tensors.push_back(at::Tensor(replay.tensors[rule.index]));
        break;
      case How::alias:
        replay.tensors.push_back(at::alias(replay.tensors[rule.index]));
        break;
    }
  }
}

}  // namespace sinter::frontend
