#include "plan_machine.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace sinter::passes {

using namespace ir;

namespace {

[[noreturn]] void fail(const std::string& what, BufferId buffer) {
  throw std::runtime_error(what + " b" + std::to_string(buffer.index));
}

int64_t element_of(const Type& type, std::span<const int64_t> point) {
  int64_t element = 0;
  for (size_t d = 0; d < point.size(); ++d) element += point[d] * type.strides[d].value();
  return element;
}

}  // namespace

void PlanMachine::Block::write(int64_t byte, int64_t size, const RefValue& value) {
  auto first = elements.lower_bound(byte - 16);
  while (first != elements.end() && first->first < byte + size) {
    const bool overlaps = first->first + first->second.second > byte;
    first = overlaps ? elements.erase(first) : std::next(first);
  }
  elements[byte] = {value, size};
}

PlanMachine::PlanMachine(const Graph& graph, const PlannedMemory& planned, const Environment& environment)
    : graph_(graph),
      planned_(planned),
      environment_(environment),
      held_(planned.plan.buffers.size()),
      roots_(planned.plan.buffers.size()) {
  for (uint32_t i = 0; i < planned.plan.buffers.size(); ++i) {
    const Buffer& buffer = planned.plan.buffers[i];
    if (buffer.kind == BufferKind::input) give({i}, environment.inputs.at(buffer.index));
    if (buffer.kind == BufferKind::state) give({i}, environment.states.at(buffer.index));
  }
}

std::vector<HostTensor> PlanMachine::run() {
  run_steps(planned_.plan.once);
  run_steps(planned_.plan.steps);
  std::vector<HostTensor> outputs;
  for (BufferId output : planned_.plan.outputs) {
    if (held_[output.index] == nullptr) fail("the frame does not hold output", output);
    outputs.push_back(read(output));
  }
  for (BufferId written : planned_.plan.written) outputs.push_back(read(written));
  return outputs;
}

std::pair<const void*, int64_t> PlanMachine::address(size_t output) const {
  const Place where = place(planned_.plan.outputs.at(output));
  return {where.block.get(), where.byte};
}

void PlanMachine::run_steps(const std::vector<Step>& steps) {
  for (const Step& next : steps) std::visit([&](const auto& s) { step(s); }, next);
}

void PlanMachine::step(const Launch& launch) {
  const Fused& fused = *graph_.node(planned_.kernels.at(launch.kernel).node).as<Fused>();
  Environment inside;
  size_t next = 0;
  for (NodeId id : fused.body->order()) {
    if (fused.body->node(id).as<Input>()) inside.inputs.push_back(read(launch.args.at(next++).buffer));
  }
  for (const HostTensor& result : interpret(*fused.body, inside)) {
    const BufferId target = launch.args.at(next++).buffer;
    if (!writing_ && lasts(target)) fail("written before writes begin:", target);
    write(target, result);
  }
}

void PlanMachine::step(const RunCall& run) {
  const ExternCall& call = planned_.plan.calls.at(run.call);
  std::vector<HostTensor> values;
  for (const Arg& arg : call.args) {
    for_each_value(arg, [&](ValueId id) {
      if (held_[id.index] == nullptr) fail("a call takes a tensor nobody bound:", BufferId{id.index});
      values.push_back(read(BufferId{id.index}));
    });
  }
  if (call.op == "aten::copy_") {
    if (!writing_ && lasts(BufferId{call.args[0].value()->index}))
      fail("written before writes begin:", call.results[0]);
    return write(BufferId{call.args[0].value()->index}, values[1]);
  }
  const bool clone = call.op == "aten::clone";
  const Node node{.payload = Call{call.op, {}, {}, false, false}, .args = call.args, .results = {}, .scope = {}};
  const auto results = clone ? values : environment_.call(node, values);
  if (call.op.ends_with('_')) {
    const BufferId target{call.args[0].value()->index};
    if (!writing_ && lasts(target)) fail("written before writes begin:", target);
    write(target, results[0]);
    if (!call.results[0].valid()) return;
    held_[call.results[0].index] = place(target).block;
    roots_[call.results[0].index] = place(target).block;
    return;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (call.results[i].valid()) give(call.results[i], results[i]);
  }
}

void PlanMachine::step(const BeginWrites&) { writing_ = true; }

/// True for memory that was there before the call.
bool PlanMachine::lasts(BufferId id) const {
  while (planned_.plan.buffers[id.index].base.valid()) id = planned_.plan.buffers[id.index].base;
  const BufferKind kind = planned_.plan.buffers[id.index].kind;
  return kind == BufferKind::input || kind == BufferKind::state;
}

void PlanMachine::step(const Allocate& allocate) {
  held_[allocate.buffer.index] = std::make_shared<Block>();
  roots_[allocate.buffer.index] = held_[allocate.buffer.index];
}

void PlanMachine::step(const Bind& bind) {
  const Buffer& buffer = planned_.plan.buffers[bind.buffer.index];
  const bool derived = buffer.kind == BufferKind::view || buffer.kind == BufferKind::in_place;
  if (derived && held_[buffer.base.index] == nullptr) fail("the base is not held when this is bound:", bind.buffer);
  held_[bind.buffer.index] = place(bind.buffer).block;
}

void PlanMachine::step(const Release& release) {
  if (held_[release.buffer.index] == nullptr) fail("released without being held:", release.buffer);
  held_[release.buffer.index].reset();
}

PlanMachine::Place PlanMachine::place(BufferId id) const {
  const Buffer& buffer = planned_.plan.buffers[id.index];
  if (buffer.kind == BufferKind::arena) {
    const int64_t end = buffer.offset + buffer.type.span() * bytes_of(buffer.type.dtype);
    if (end > planned_.plan.arena_bytes) fail("outside the arena:", id);
    return {arena_, buffer.offset};
  }
  if (buffer.kind == BufferKind::in_place) return place(buffer.base);
  if (buffer.kind == BufferKind::view) {
    Place base = place(buffer.base);
    base.byte += buffer.offset * bytes_of(buffer.type.dtype);
    return base;
  }
  auto block = roots_[id.index].lock();
  if (block == nullptr) fail("used before it is made or after it is gone:", id);
  return {block, 0};
}

HostTensor PlanMachine::read(BufferId id) const {
  const Type& type = planned_.plan.buffers[id.index].type;
  const Place where = place(id);
  const int64_t size = bytes_of(type.dtype);
  HostTensor tensor = zeros(type);
  for_each_point(type.static_sizes(), [&](std::span<const int64_t> point) {
    const auto found = where.block->elements.find(where.byte + element_of(type, point) * size);
    if (found == where.block->elements.end() || found->second.second != size) fail("reads what is not there:", id);
    tensor.set(point, found->second.first);
  });
  return tensor;
}

void PlanMachine::write(BufferId id, const HostTensor& tensor) {
  const Type& type = planned_.plan.buffers[id.index].type;
  const Place where = place(id);
  const int64_t size = bytes_of(type.dtype);
  for_each_point(type.static_sizes(), [&](std::span<const int64_t> point) {
    where.block->write(where.byte + element_of(type, point) * size, size, tensor.at(point));
  });
}

void PlanMachine::give(BufferId id, const HostTensor& tensor) {
  held_[id.index] = std::make_shared<Block>();
  roots_[id.index] = held_[id.index];
  write(id, tensor);
}

}  // namespace sinter::passes
