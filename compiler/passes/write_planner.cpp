#include <algorithm>
#include <utility>

#include "compiler/ir/view_source.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/effects.h"
#include "compiler/passes/element_access.h"
#include "compiler/passes/memory_planner.h"

/// Where the values of write-backs lie. A chain of versions (copies of an input or state that are written on, scattered
/// into, or computed anew) is put into the memory it ends up in, as far as nothing reads an older version later; what
/// is not there when the steps end is copied.
namespace sinter::passes {

using namespace ir;

namespace {

/// The version that a call's result starts from; invalid for other nodes.
ValueId source_of(const Node& node) {
  const Call* call = node.as<Call>();
  const bool copies = call != nullptr && (call->op == "aten::clone" || call->op == scatter);
  return copies && node.args.at(0).value() != nullptr ? *node.args[0].value() : ValueId{};
}

/// True when tensors of both types fill the same memory, whatever their sizes.
bool same_memory(const Type& a, const Type& b) {
  return a == b ||
         (a.dtype == b.dtype && a.device == b.device && a.is_dense() && b.is_dense() && a.numel() == b.numel());
}

std::vector<Dim> dims_of(const Arg& list) {
  std::vector<Dim> dims;
  for (const Arg& item : *list.list()) dims.emplace_back(std::get<int64_t>(item.data));
  return dims;
}

}  // namespace

void MemoryPlanner::collect_homes() {
  home_.assign(graph_.value_count(), {});
  held_.assign(graph_.value_count(), {});
  for (NodeId id : graph_.order()) {
    const Node& node = graph_.node(id);
    if (!node.as<Write>()) continue;
    const WriteBack write{*node.args[0].value(), *node.args[1].value()};
    writes_.push_back(write);
    held_[write.leaf.index] = write.leaf;
    ValueId version = root_[write.value.index];
    while (version.valid() && version != write.leaf && !home_[version.index].valid()) {
      if (!same_memory(graph_.type(version), graph_.type(write.leaf))) break;
      home_[version.index] = write.leaf;
      const ValueId source = source_of(graph_.producer(version));
      version = source.valid() ? root_[source.index] : ValueId{};
    }
  }
}

bool MemoryPlanner::can_settle(ValueId value) const {
  const ValueId leaf = home_[value.index];
  if (!leaf.valid() || once_ || is_output_[value.index]) return false;
  return !may_throw_after(value) && last_use_[held_[leaf.index].index] <= position_;
}

/// True when a call that may refuse its data comes later: eager would leave the version of that moment behind. A call
/// that writes on a copy made for it leaves behind what it wrote, as in eager, where nothing else is written.
bool MemoryPlanner::may_throw_after(ValueId value) const {
  if (!last_throw_.valid() || last_throw_at_ <= position_) return false;
  if (writes_.size() > 1) return true;
  bool writes_it = false;
  for (const Arg& arg : graph_.node(last_throw_).args) {
    for_each_value(arg, [&](ValueId used) { writes_it = writes_it || used == value; });
  }
  const Node& maker = graph_.producer(value);
  return !writes_it || last_throw_at_ != position_ + 1 || maker.as<Call>() == nullptr || !has_effect(maker);
}

void MemoryPlanner::settle(ValueId value) {
  const ValueId leaf = home_[value.index];
  const Place& home = places_[leaf.index];
  const bool same = graph_.type(value) == graph_.type(leaf);
  const BufferId buffer = same ? home.buffer : add_buffer({BufferKind::view, graph_.type(value), 0, 0, home.buffer});
  held_[leaf.index] = value;
  places_[value.index] = {home.memory, buffer, same};
  begin_writes();
}

/// Lets a kernel write the new version over the old one, where it reads every element before it writes it.
bool MemoryPlanner::store_at_home(ValueId value, const Node& node, size_t output, std::vector<bool>& in_place) {
  if (!can_settle(value)) return false;
  const ValueId leaf = home_[value.index];
  const Graph& body = *node.as<Fused>()->body;
  std::vector<size_t> shared;
  for (size_t i = 0; i < node.args.size(); ++i) {
    const ValueId arg = *node.args[i].value();
    if (places_[arg.index].memory != places_[leaf.index].memory) continue;
    const bool whole = graph_.type(arg) == graph_.type(value) && view_source(graph_, arg).offset == 0;
    if (!whole || !reads_elementwise(body, i)) return false;
    shared.push_back(i);
  }
  for (size_t i : shared) in_place[i] = true;
  if (!shared.empty()) in_place[node.args.size() + output] = true;
  settle(value);
  return true;
}

/// A copy of a version that nothing reads afterwards is that version.
bool MemoryPlanner::copy_at_home(const Node& node) {
  const Call& call = *node.as<Call>();
  if (call.op != "aten::clone" || node.results.size() != 1 || !can_settle(node.results[0])) return false;
  const ValueId result = node.results[0];
  const ValueId source = *node.args.at(0).value();
  const ValueId leaf = home_[result.index];
  if (source != held_[leaf.index] || graph_.type(source) != graph_.type(result)) return false;
  settle(result);
  return true;
}

/// Writes a part of a version, or of a temporary that dies here, where it lies; else a part of a copy.
void MemoryPlanner::visit_scatter(const Node& node) {
  const ValueId base = *node.args.at(0).value();
  const ValueId source = *node.args.at(1).value();
  const ValueId result = node.results.at(0);
  if (!scatter_at_home(base, source, result) && !scatter_over(base, source, result)) {
    const BufferId from = bound_buffer_of(base);
    add_result(result);
    add_clone(from, places_[result.index].buffer);
  }
  Type part = graph_.type(source);
  part.strides = dims_of(node.args.at(3));
  const BufferId from = bound_buffer_of(source);
  add_copy(add_part(places_[result.index], std::move(part), std::get<int64_t>(node.args.at(4).data)), from);
}

bool MemoryPlanner::scatter_at_home(ValueId base, ValueId source, ValueId result) {
  const ValueId leaf = home_[result.index];
  if (!can_settle(result) || held_[leaf.index] != base || root_[source.index] == base) return false;
  settle(result);
  (void)bound_buffer_of(result);
  return true;
}

bool MemoryPlanner::scatter_over(ValueId base, ValueId source, ValueId result) {
  if (once_ || root_[base.index] != base || root_[source.index] == base || is_output_[result.index]) return false;
  if (graph_.type(result) != graph_.type(base)) return false;
  Memory& memory = memories_[places_[base.index].memory];
  if (!memory.owned || memory.last != position_) return false;
  (void)bound_buffer_of(base);
  keep_until(memory, last_use_[result.index]);
  places_[result.index] = places_[base.index];
  return true;
}

/// Copies into a part of memory that is bound already.
void MemoryPlanner::add_copy(BufferId to, BufferId from) {
  steps_->push_back(Bind{to});
  add_call({"aten::copy_", {{ValueId{to.index}}, {ValueId{from.index}}, {false}}, {BufferId{}}, {}, {}, false});
  steps_->push_back(Release{to});
}

void MemoryPlanner::add_clone(BufferId from, BufferId to) {
  add_call({"aten::clone", {{ValueId{from.index}}, {None{}}}, {to}, {}, {}, false});
}

void MemoryPlanner::add_writes() {
  std::vector<std::pair<BufferId, BufferId>> copies;
  std::vector<BufferId> clones;
  for (const WriteBack& write : writes_) {
    result_.plan.written.push_back(places_[write.leaf.index].buffer);
    const ValueId root = root_[write.value.index];
    if (held_[write.leaf.index] == root && root != write.leaf) continue;
    BufferId from = bound_buffer_of(write.value);
    const uint32_t memory = places_[root.index].memory;
    const bool changes = std::any_of(writes_.begin(), writes_.end(), [&](const WriteBack& other) {
      return places_[other.leaf.index].memory == memory;
    });
    if (changes) {  // it lies where another write-back goes to
      const BufferId own = add_buffer({BufferKind::result, graph_.type(write.value), 0, 0, {}});
      add_clone(from, own);
      clones.push_back(own);
      from = own;
    }
    copies.emplace_back(places_[write.leaf.index].buffer, from);
  }
  if (!copies.empty()) begin_writes();
  for (const auto& [leaf, from] : copies) {
    const BufferId target = add_buffer({BufferKind::view, result_.plan.buffers[leaf.index].type, 0, 0, leaf});
    add_copy(target, from);
  }
  for (BufferId clone : clones) steps_->push_back(Release{clone});
}

void MemoryPlanner::begin_writes() {
  if (!std::exchange(writing_, true)) steps_->push_back(BeginWrites{});
}

}  // namespace sinter::passes
