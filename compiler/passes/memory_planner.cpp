#include "compiler/passes/memory_planner.h"

#include <algorithm>
#include <ranges>

#include "compiler/ir/view_source.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/element_access.h"
#include "compiler/passes/frozen.h"
#include "compiler/passes/liveness.h"
#include "compiler/passes/onednn_calls.h"
#include "compiler/support/errors.h"
#include "compiler/support/planted.h"

namespace sinter::passes {

using namespace ir;

MemoryPlanner::MemoryPlanner(const Graph& graph, const PassContext& context, Temporaries temporaries)
    : graph_(graph),
      temporaries_(temporaries),
      frozen_(frozen_nodes(graph, context.freeze)),
      is_output_(graph.value_count(), false),
      crosses_(graph.value_count(), false),
      uses_(use_counts(graph)),
      given_(graph.value_count()) {
  result_.plan.name = graph.name;
  result_.plan.device = graph.device;
  result_.plan.backend = context.device.backend;
  collect_roots();
  collect_homes();
}

PlannedMemory MemoryPlanner::run() {
  std::vector<NodeId> once;
  std::vector<NodeId> every;
  for (NodeId id : graph_.order()) {
    const Node& node = graph_.node(id);
    if (node.as<View>() || node.as<Input>() || node.as<State>() || node.as<Write>()) continue;
    (frozen_[id.index] ? once : every).push_back(id);
  }
  plan_phase(once, result_.plan.once, true);
  plan_phase(every, result_.plan.steps, false);
  return std::move(result_);
}

void MemoryPlanner::collect_roots() {
  root_.resize(graph_.value_count());
  for (NodeId id : graph_.order()) {
    const Node& node = graph_.node(id);
    for (ValueId result : node.results) {
      const auto& alias = graph_.value(result).alias;
      if (node.as<View>()) {
        root_[result.index] = root_[node.args[0].value()->index];
      } else {
        root_[result.index] = alias ? root_[alias->base.index] : result;
      }
    }
    if (node.as<View>() || frozen_[id.index]) continue;
    for (const Arg& arg : node.args) {
      for_each_value(arg, [&](ValueId value) {
        const ValueId root = root_[value.index];
        crosses_[root.index] = crosses_[root.index] || frozen_[graph_.value(root).producer.index];
      });
    }
  }
  for (ValueId output : graph_.outputs) is_output_[root_[output.index].index] = true;
}

void MemoryPlanner::plan_phase(const std::vector<NodeId>& nodes, std::vector<Step>& steps, bool once) {
  steps_ = &steps;
  once_ = once;
  places_.assign(graph_.value_count(), {});
  memories_.clear();
  chunks_.clear();
  chunk_buffers_.clear();
  live_bytes_ = 0;
  peak_bytes_ = 0;
  collect_last_uses(nodes, once);
  start_given(once);
  for (position_ = 0; position_ < nodes.size(); ++position_) {
    const Node& node = graph_.node(nodes[position_]);
    if (node.as<Call>())
      visit_call(nodes[position_]);
    else if (node.as<Fused>())
      visit_fused(nodes[position_]);
    else
      throw InternalError("plan_memory", "a primitive stands outside a fused node");
    release_dead();
  }
  if (!once) add_writes();
  release_dead();
  if (!once) add_outputs();
  place_chunks();
}

void MemoryPlanner::collect_last_uses(const std::vector<NodeId>& nodes, bool once) {
  last_use_.assign(graph_.value_count(), 0);
  last_throw_ = {};
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = graph_.node(nodes[i]);
    if (may_refuse(graph_, node)) {
      last_throw_ = nodes[i];
      last_throw_at_ = i;
    }
    for (const Arg& arg : node.args) {
      for_each_value(arg, [&](ValueId value) { last_use_[root_[value.index].index] = i; });
    }
    for (ValueId result : node.results) last_use_[root_[result.index].index] = i;
  }
  if (once) return;
  for (const WriteBack& write : writes_) last_use_[root_[write.value.index].index] = nodes.size();
  for (ValueId output : graph_.outputs) {
    const ValueId root = root_[output.index];
    if (!held_[root.index].valid()) last_use_[root.index] = forever;  // written memory is returned as it is in the end
  }
}

/// Memory that is there before the phase: inputs, state, and in the second phase what the first one kept.
void MemoryPlanner::start_given(bool once) {
  for (NodeId id : graph_.order()) {
    const Node& node = graph_.node(id);
    for (ValueId value : node.results) {
      BufferId& buffer = given_[value.index];
      const Type& type = graph_.type(value);
      if (!buffer.valid()) {
        if (const auto* input = node.as<Input>()) buffer = add_buffer({BufferKind::input, type, input->index, 0, {}});
        if (const auto* state = node.as<State>()) buffer = add_buffer({BufferKind::state, type, state->index, 0, {}});
        if (buffer.valid()) result_.plan.buffers[buffer.index].alignment = graph_.value(value).alignment;
      }
      if (!buffer.valid() || (once && frozen_[id.index] && !node.as<State>())) continue;
      Memory memory;
      memory.buffer = buffer;
      memory.last = forever;
      places_[value.index] = {add_memory(std::move(memory)), buffer, true};
    }
  }
}

BufferId MemoryPlanner::add_buffer(Buffer buffer) {
  result_.plan.buffers.push_back(std::move(buffer));
  return {static_cast<uint32_t>(result_.plan.buffers.size() - 1)};
}

uint32_t MemoryPlanner::add_memory(Memory memory) {
  live_bytes_ += memory.bytes;
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  memories_.push_back(std::move(memory));
  return static_cast<uint32_t>(memories_.size() - 1);
}

BufferId MemoryPlanner::buffer_of(ValueId value) {
  Place& place = places_[value.index];
  if (place.buffer.valid()) return place.buffer;
  const ViewSource source = view_source(graph_, value);
  if (!source.is_view) throw InternalError("plan_memory", "a value is used before it has memory");
  const Place base = places_[source.base.index];
  place.memory = base.memory;
  place.buffer = add_part(base, graph_.type(value), source.offset);
  return place.buffer;
}

BufferId MemoryPlanner::add_part(const Place& whole, Type type, int64_t offset) {
  const Memory& memory = memories_.at(whole.memory);
  if (memory.chunk == none) return add_buffer({BufferKind::view, std::move(type), 0, offset, whole.buffer});
  const int64_t bytes = offset * bytes_of(type.dtype);
  const BufferId part = add_buffer({BufferKind::arena, std::move(type), 0, bytes, {}});
  chunk_buffers_.emplace_back(memory.chunk, part.index);
  return part;
}

void MemoryPlanner::add_call(ExternCall call) {
  steps_->push_back(RunCall{static_cast<uint32_t>(result_.plan.calls.size())});
  result_.plan.calls.push_back(std::move(call));
}

void MemoryPlanner::keep_until(Memory& memory, size_t last) {
  memory.last = last;
  if (memory.chunk != none) chunks_[memory.chunk].last = last;
}

BufferId MemoryPlanner::bound_buffer_of(ValueId value) {
  const BufferId buffer = buffer_of(value);
  Place& place = places_[value.index];
  if (place.bound) return buffer;
  const Buffer& entry = result_.plan.buffers[buffer.index];
  if (entry.kind == BufferKind::view || entry.kind == BufferKind::in_place) {
    const ViewSource source = view_source(graph_, value);
    if (source.is_view) (void)bound_buffer_of(source.base);
  }
  steps_->push_back(Bind{buffer});
  place.bound = true;
  memories_[place.memory].bound.push_back(buffer);
  return buffer;
}

KernelArg MemoryPlanner::kernel_arg(ValueId value) {
  const Type& type = graph_.type(value);
  if (type.device == graph_.device) return {KernelArg::Pass::pointer, buffer_of(value)};
  const auto pass = is_float(type.dtype) ? KernelArg::Pass::scalar_f64 : KernelArg::Pass::scalar_i64;
  return {pass, bound_buffer_of(value)};
}

void MemoryPlanner::visit_call(NodeId id) {
  const Node& node = graph_.node(id);
  const Call& call = *node.as<Call>();
  if (copy_at_home(node)) return;
  if (call.op == scatter) return visit_scatter(node);
  ExternCall planned;
  planned.op = call.op;
  planned.args = node.args;
  if (may_sum_in_place(node)) {
    planned.op = onednn_convolution_into_sum;
    std::swap(planned.args[0], planned.args[1]);
  }
  planned.random = call.random;
  // ATen's own are marked so that they keep their order.
  planned.impure = call.impure && !call.op.starts_with("aten::");
  if (node.scope.valid()) {
    planned.module = graph_.scope(node.scope).module;
    planned.source = graph_.scope(node.scope).source;
  }
  for (Arg& arg : planned.args) {
    for_each_value(arg, [&](ValueId& value) { value = ValueId{bound_buffer_of(value).index}; });
  }
  for (ValueId result : node.results) {
    if (uses_[result.index] > 0) add_result(result);
    planned.results.push_back(places_[result.index].buffer);
  }
  add_call(std::move(planned));
}

/// True where what a convolution adds to is memory of a call's result that dies here: the sum may lie there.
bool MemoryPlanner::may_sum_in_place(const Node& node) const {
  if (once_ || node.as<Call>()->op != onednn_summed_convolution) return false;
  const ValueId image = *node.args[0].value();
  const ValueId summand = *node.args[1].value();
  const Place& place = places_[summand.index];
  if (place.memory == none || place.memory == places_[root_[image.index].index].memory) return false;
  const Memory& memory = memories_[place.memory];
  const bool is_result = result_.plan.buffers[memory.buffer.index].kind == BufferKind::result;
  return is_result && memory.owned && memory.last == position_ && root_[summand.index] == summand &&
         graph_.type(summand) == graph_.type(node.results[0]);
}

bool MemoryPlanner::kept_after_once(ValueId root) const { return once_ && crosses_[root.index]; }

void MemoryPlanner::add_result(ValueId value) {
  const ValueId root = root_[value.index];
  const bool kept = kept_after_once(root);
  const BufferId buffer = add_buffer({kept ? BufferKind::frozen : BufferKind::result, graph_.type(value), 0, 0,
                                      BufferId{}, graph_.value(value).alignment});
  if (kept) given_[value.index] = buffer;
  if (root != value && places_[root.index].memory != none) {  // lies in memory that is there already
    places_[value.index] = {places_[root.index].memory, buffer, true};
    memories_.at(places_[root.index].memory).bound.push_back(buffer);
    return;
  }
  Memory memory;
  memory.buffer = buffer;
  if (!kept) memory.bound.push_back(buffer);
  memory.owned = !kept && !is_output_[root.index] && root == value;
  memory.bytes = memory_bytes(graph_.type(value));
  memory.last = kept ? forever : last_use_[root.index];
  places_[value.index] = {add_memory(std::move(memory)), buffer, true};
  note_live(value, SegmentOwner::Kind::library_result);
}

void MemoryPlanner::visit_fused(NodeId id) {
  const Node& node = graph_.node(id);
  Launch launch;
  launch.kernel = static_cast<uint32_t>(result_.kernels.size());
  for (const Arg& arg : node.args) launch.args.push_back(kernel_arg(*arg.value()));
  std::vector<bool> in_place(node.args.size() + node.results.size(), false);
  for (size_t i = 0; i < node.results.size(); ++i) {
    add_kernel_result(node.results[i], node, i, in_place);
    launch.args.push_back({KernelArg::Pass::pointer, places_[node.results[i].index].buffer});
  }
  steps_->push_back(std::move(launch));
  result_.kernels.push_back({id, std::move(in_place)});
}

void MemoryPlanner::add_kernel_result(ValueId value, const Node& node, size_t output, std::vector<bool>& in_place) {
  const bool kept = kept_after_once(value);
  if (!kept && store_at_home(value, node, output, in_place)) return;
  if (!kept && !is_output_[value.index] && take_over(value, node, output, in_place)) return;
  const Type& type = graph_.type(value);
  Memory memory;
  memory.owned = !kept && !is_output_[value.index];
  memory.last = kept ? forever : last_use_[value.index];
  const bool in_arena = memory.owned && temporaries_ == Temporaries::arena;
  if (in_arena) {
    memory.buffer = add_buffer({BufferKind::arena, type, 0, 0, {}});
    memory.chunk = static_cast<uint32_t>(chunks_.size());
    chunks_.push_back({memory_bytes(type), position_, planted(Bug::memory_freed_early) ? position_ : memory.last, 0});
    chunk_buffers_.emplace_back(memory.chunk, memory.buffer.index);
  } else {
    memory.buffer = add_buffer({kept ? BufferKind::frozen : BufferKind::output, type, 0, 0, {}});
    if (kept) given_[value.index] = memory.buffer;
    if (memory.owned) memory.bound.push_back(memory.buffer);
    memory.bytes = memory_bytes(type);
    steps_->push_back(Allocate{memory.buffer});
  }
  const BufferId buffer = memory.buffer;
  places_[value.index] = {add_memory(std::move(memory)), buffer, !in_arena};
  note_live(value, SegmentOwner::Kind::temporary);
}

void MemoryPlanner::note_live(ValueId value, SegmentOwner::Kind kind) {
  std::vector<LiveValue>& held = memories_[places_[value.index].memory].held;
  if (!held.empty()) held.back().last = position_ - 1;
  held.push_back({.value = value,
                  .kind = is_output_[root_[value.index].index] ? SegmentOwner::Kind::output : kind,
                  .first = position_,
                  .last = forever,
                  .bytes = memory_bytes(graph_.type(value))});
}

std::vector<SegmentOwner> MemoryPlanner::owners() const {
  std::vector<LiveValue> values;
  for (const Memory& memory : memories_) {
    for (LiveValue live : memory.held) {
      live.last = std::min(live.last, memory.last);
      values.push_back(live);
    }
  }
  return owners_at_peak(graph_, values);
}

/// Lets a result have the memory of an argument that dies here, where every element is read before it is written.
bool MemoryPlanner::take_over(ValueId value, const Node& node, size_t output, std::vector<bool>& in_place) {
  const Graph& body = *node.as<Fused>()->body;
  const auto memory_of = [&](size_t arg) { return places_[node.args[arg].value()->index].memory; };
  for (size_t i = 0; i < node.args.size(); ++i) {
    const ValueId arg = *node.args[i].value();
    Memory& memory = memories_[memory_of(i)];
    if (!memory.owned || memory.last != position_ || graph_.type(arg) != graph_.type(value)) continue;
    if (graph_.producer(arg).as<View>() || graph_.value(arg).alias || !reads_elementwise(body, i)) continue;
    bool only = true;
    for (size_t other = 0; other < node.args.size(); ++other) only &= other == i || memory_of(other) != memory_of(i);
    if (!only) continue;

    keep_until(memory, last_use_[value.index]);
    BufferId buffer;
    if (memory.chunk != none) {
      buffer = add_buffer({BufferKind::arena, graph_.type(value), 0, 0, {}});
      chunk_buffers_.emplace_back(memory.chunk, buffer.index);
    } else {
      buffer = add_buffer({BufferKind::in_place, graph_.type(value), 0, 0, memory.buffer});
    }
    places_[value.index] = {memory_of(i), buffer, false};
    note_live(value, SegmentOwner::Kind::temporary);
    in_place[i] = true;
    in_place[node.args.size() + output] = true;
    return true;
  }
  return false;
}

void MemoryPlanner::release_dead() {
  for (Memory& memory : memories_) {
    if (memory.last != position_) continue;
    for (const BufferId buffer : std::views::reverse(memory.bound)) steps_->push_back(Release{buffer});
    memory.bound.clear();
    memory.owned = false;
    live_bytes_ -= memory.bytes;
    memory.bytes = 0;
  }
}

void MemoryPlanner::add_outputs() {
  for (ValueId output : graph_.outputs) {
    const Node& producer = graph_.producer(output);
    if (!producer.as<Input>() && !producer.as<State>()) {
      result_.plan.outputs.push_back(bound_buffer_of(output));
      continue;
    }
    const BufferId same = add_buffer({BufferKind::view, graph_.type(output), 0, 0, buffer_of(output)});
    steps_->push_back(Bind{same});
    result_.plan.outputs.push_back(same);
  }
}

void MemoryPlanner::place_chunks() {
  const int64_t bytes = place(chunks_);
  for (const auto& [chunk, buffer] : chunk_buffers_) result_.plan.buffers[buffer].offset += chunks_[chunk].offset;
  result_.plan.arena_bytes = std::max(result_.plan.arena_bytes, bytes);
  peak_bytes_ += bytes;
}

}  // namespace sinter::passes
