#include "compiler/passes/fuse_groups.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "compiler/ir/op_cost.h"
#include "compiler/kernel/joined_loads.h"
#include "compiler/kernel/lower.h"
#include "compiler/kernel/nest.h"
#include "compiler/kernel/windows.h"
#include "compiler/passes/effects.h"
#include "compiler/passes/frozen.h"
#include "compiler/passes/region.h"
#include "compiler/support/ceil_div.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// What is broadcast into a larger region is computed again for every element; up to this cost.
constexpr int64_t most_repeated_cost = 24;
/// The same on a CPU, which has few lanes: one dear operator, but for so few elements that a launch takes as long.
constexpr int64_t most_repeated_cost_on_cpu = 16;
constexpr int64_t points_of_a_launch = 4096;

/// What an operand of a join computes is thrown away where another operand lies. About as many instructions for every
/// point take as long as to write the operand and read it again.
constexpr double most_thrown_away = 32;

int64_t cost(const Node& node) {
  const auto* primitive = node.as<Primitive>();
  return primitive == nullptr ? 1 : instructions_of(primitive->op);
}

bool is_constant(const Node& node) {
  return std::none_of(node.args.begin(), node.args.end(), [](const Arg& arg) { return arg.value() != nullptr; });
}

/// A value with more users is none that a pair of reductions goes through.
constexpr size_t most_siblings = 8;

/// Elements up to which a kernel takes hardly longer than its launch.
constexpr int64_t small_region = int64_t{1} << 16;
/// The same where launches of equal kernels may be put together without memory for it.
constexpr int64_t small_copy = int64_t{1} << 22;

/// Windows that share an element along one loop compute it once for several of them (codegen/cuda_window_writer.h).
constexpr int64_t windows_of_an_element = 4;

/// How often a kernel computes an element again that several places of a view are; 1 where none is, or where a
/// broadcast repeats it.
int64_t overlap_of(const Type& view) {
  int64_t places = 1;
  for (size_t d = 0; d < view.rank(); ++d) {
    if (view.sizes[d] != Dim(1) && view.strides[d] == Dim(0)) return 1;
    places *= view.sizes[d].constant();
  }
  return std::max<int64_t>(1, places / std::max<int64_t>(1, view.span()));
}

/// True for a kernel of windows that overlap, which CUDA code goes through in tiles.
bool slides_as_one(const Graph& graph, const kernel::Kernel& kernel) {
  if (graph.device.kind != Device::Kind::cuda || kernel.reduced == 0) return false;
  const auto windows = kernel::windows_of(kernel);
  return windows && windows->slides;
}

/// Rows are gone through several times, and keep every operand of a join in registers of its own.
constexpr size_t most_joined_in_rows = 8;

/// Rows that are joined run along memory, a block holds a whole one, and what is joined, in registers, and there are
/// groups enough to keep a device busy.
constexpr int64_t fewest_elements_at_once = int64_t{1} << 17;

bool holds_groups(const kernel::Kernel& kernel) {
  const int64_t at_once = kernel.numel() / kernel.group_rows();
  return kernel.row_points() <= kernel::longest_row_of_group && at_once >= fewest_elements_at_once &&
         !kernel::runs_across_rows(kernel);
}

/// True where points ask for the operands of a join that is too long for this.
bool has_long_join(const Graph& graph, const std::vector<NodeId>& members, const kernel::Kernel& kernel) {
  const size_t most = kernel.reduced > 0 ? most_joined_in_rows : most_joined_at_points;
  return has_guards(kernel) && std::ranges::any_of(members, [&](NodeId id) {
           return graph.node(id).as<Join>() != nullptr && graph.node(id).args.size() > most;
         });
}

/// True where neighbours in memory belong to different sums of what is joined: CUDA code goes through columns in
/// vectors where it need not ask for each element where that lies.
bool sums_joined_columns(const Graph& graph, const kernel::Kernel& kernel) {
  return graph.device.kind == Device::Kind::cuda && kernel.reduced > 0 && kernel.numel() > small_region &&
         has_guards(kernel) && runs_across_rows(kernel) && !kernel::windows_of(kernel);
}

/// Elements from which on it takes longer to go through memory an element at a time than to turn it in a kernel of its
/// own.
constexpr int64_t most_turned_elements = int64_t{1} << 18;

/// True where rows that lie one way are stored, or read, another way, and are too large for that.
bool turns_large_rows(const Graph& graph, const kernel::Kernel& kernel) {
  return graph.device.kind == Device::Kind::cuda && kernel.numel() > most_turned_elements &&
         kernel::turns_rows(kernel) && !kernel::windows_of(kernel);
}

/// How far neighbours along the innermost loop are apart; -1 where no one number says.
int64_t inner_step(const kernel::Kernel& kernel, const Index& index) {
  return index.is_affine() ? index.affine.strides[kernel.extents.size() - 1] : -1;
}

/// True where neighbours along the innermost loop read neighbours, or one element.
bool reads_neighbours(const kernel::Kernel& kernel, const kernel::Load& load) {
  const int64_t step = inner_step(kernel, load.index);
  return step == 0 || step == 1;
}

/// True where several operands of joins are no neighbours in memory along the innermost loop: code for the CPU gathers
/// each of them at every point, also where it lies elsewhere.
bool gathers_joined(const Graph& graph, const kernel::Kernel& kernel) {
  if (graph.device.kind != Device::Kind::cpu || kernel.extents.empty()) return false;
  return std::ranges::count_if(kernel.body, [&](const kernel::Instruction& instruction) {
           const kernel::Load* load = kernel::memory_load(kernel, instruction);
           return load != nullptr && load->guard && !reads_neighbours(kernel, *load);
         }) > 1;
}

/// Params whose addresses a kernel holds at once: of tensors that are joined, the one that was chosen.
size_t held_params(const kernel::Kernel& kernel) {
  size_t held = kernel.params.size();
  for (const kernel::JoinedLoads& join : kernel::joined_loads(kernel)) held -= join.loads.size() - 1;
  return held;
}

/// True where threads that are neighbours write neighbours.
bool writes_neighbours(const kernel::Kernel& kernel) {
  return std::ranges::all_of(kernel.stores, [&](const auto& store) { return inner_step(kernel, store.index) == 1; });
}

/// Tensors that threads that are neighbours read elsewhere than where neighbours lie.
size_t turned_params(const kernel::Kernel& kernel) {
  std::unordered_set<size_t> turned;
  for (const kernel::Instruction& instruction : kernel.body) {
    const kernel::Load* load = kernel::memory_load(kernel, instruction);
    if (load != nullptr && !reads_neighbours(kernel, *load)) turned.insert(load->param);
  }
  return turned.size();
}

/// True where threads that are neighbours read and write neighbours.
bool streams(const kernel::Kernel& kernel) {
  return kernel.extents.empty() || (writes_neighbours(kernel) && turned_params(kernel) == 0);
}

/// The same, but for one tensor that is read.
bool turns_one(const kernel::Kernel& kernel) {
  return !kernel.extents.empty() && writes_neighbours(kernel) && turned_params(kernel) == 1;
}

int64_t bytes(const Type& type) { return type.numel() * bytes_of(type.dtype); }

/// By node: true for reductions, and for primitives that compute something of their results alone.
std::vector<bool> follow_from_reductions(const Graph& graph) {
  std::vector<bool> follows(graph.node_count(), false);
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    follows[id.index] = node.as<Reduce>() != nullptr;
    if (node.as<Primitive>() == nullptr) continue;
    for (const Arg& arg : node.args) {
      if (arg.value() == nullptr) continue;
      const ValueId base = kernel::region_operand(graph, *arg.value()).base;
      const bool same_size = graph.type(base).numel() == graph.type(node.results[0]).numel();
      if (same_size && follows[graph.value(base).producer.index]) follows[id.index] = true;
    }
  }
  return follows;
}

}  // namespace

FuseGroups::FuseGroups(const Graph& graph, bool freeze, bool generic_sizes)
    : graph_(graph),
      generic_sizes_(generic_sizes),
      leader_(graph.node_count()),
      members_(graph.node_count()),
      consumers_(graph.node_count()),
      escapes_(graph.value_count(), false),
      is_output_(graph.value_count(), false),
      users_(graph.value_count()),
      frozen_(frozen_nodes(graph, freeze)),
      reduces_(graph.node_count(), false),
      slides_(graph.node_count(), false),
      position_(graph.node_count(), 0) {
  size_t calls = 0;
  for (size_t i = 0; i < graph.order().size(); ++i) {
    const NodeId id = graph.order()[i];
    position_[id.index] = i;
    leader_[id.index] = id;
    members_[id.index] = {id};
    reduces_[id.index] = graph.node(id).as<Reduce>() != nullptr;
    reach_.push_back(i);
    calls_before_.push_back(calls);
    if (graph.node(id).as<Call>() != nullptr) ++calls;
  }
  collect_edges();
  collect_siblings();
  collect_dependencies();
}

void FuseGroups::collect_edges() {
  for (NodeId id : graph_.order()) {
    const Node& node = graph_.node(id);
    if (node.as<View>()) continue;
    for (const Arg& arg : node.args) {
      for_each_value(arg, [&](ValueId value) {
        const ValueId base =
            is_computed(node) ? kernel::region_operand(graph_, value).base : view_source(graph_, value).base;
        if (!is_computed(node)) {
          escapes_[base.index] = true;
          return;
        }
        users_[base.index].push_back(id);
        if (!is_computed(graph_.producer(base))) return;
        edges_.push_back({graph_.value(base).producer, id, bytes(graph_.type(base))});
      });
    }
  }
  for (ValueId output : graph_.outputs) {
    const ValueId base = view_source(graph_, output).base;
    escapes_[base.index] = is_output_[base.index] = true;
  }
  // A reduction with what spreads its result first: both then draw in the values that they share, which otherwise end
  // up in regions that a kernel of rows cannot have.
  const std::vector<bool> of_rows = follow_from_reductions(graph_);
  const auto comes_first = [&](const Edge& edge) {
    return of_rows[edge.producer.index] && !call_between(edge.producer, edge.consumer);
  };
  const auto bytes_first = [](const Edge& a, const Edge& b) { return a.bytes > b.bytes; };
  std::ranges::stable_sort(edges_, bytes_first);
  std::ranges::stable_partition(edges_, comes_first);
}

void FuseGroups::collect_siblings() {
  for (uint32_t value = 0; value < users_.size(); ++value) {
    const auto& users = users_[value];
    if (users.size() < 2 || users.size() > most_siblings) continue;
    for (auto a = users.begin(); a != users.end(); ++a) {
      for (auto b = a + 1; b != users.end(); ++b) siblings_.push_back({*a, *b, bytes(graph_.type(ValueId{value}))});
    }
  }
  std::ranges::stable_sort(siblings_, [](const Edge& a, const Edge& b) { return a.bytes > b.bytes; });
}

void FuseGroups::collect_dependencies() {
  NodeId last_effect;
  for (NodeId id : graph_.order()) {
    const Node& node = graph_.node(id);
    if (node.as<View>()) continue;
    for (const Arg& arg : node.args) {
      for_each_value(arg, [&](ValueId value) {
        consumers_[graph_.value(view_source(graph_, value).base).producer.index].push_back(id);
      });
    }
    if (!has_effect(node)) continue;
    if (last_effect.valid()) consumers_[last_effect.index].push_back(id);
    last_effect = id;
  }
}

int64_t FuseGroups::merge_all() {
  int64_t merges = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (const Edge& edge : edges_) {
      if (holds_more(edge) || !try_merge(edge)) continue;
      changed = true;
      ++merges;
    }
  }
  merges += std::ranges::count_if(siblings_, [&](const Edge& edge) { return try_merge_siblings(edge); });
  const auto second_parts = reductions_of_one_region();
  merges += std::ranges::count_if(second_parts, [&](const Edge& edge) { return try_merge_siblings(edge); });
  merges += merge_full_regions();
  return merges + merge_small_regions();
}

/// Small regions of equal sizes in one launch, whatever they read: updates of parameters and of counters, weights that
/// autocast rounds.
int64_t FuseGroups::merge_small_regions() {
  if (graph_.device.kind != Device::Kind::cuda) return 0;
  int64_t merges = 0;
  std::map<std::vector<int64_t>, NodeId> last;  // by sizes and strides: a member of the region that was seen last
  for (const NodeId id : graph_.order()) {
    const NodeId leader = leader_[id.index];
    if (!is_computed(graph_.node(id)) || members_[leader.index].back() != id || reduces_[leader.index]) continue;
    const Type& type = graph_.type(graph_.node(id).results[0]);
    if (!type.is_static() || type.numel() > small_copy || type.numel() == 0) continue;
    std::vector<int64_t> key = type.static_sizes();
    const std::vector<int64_t> strides = type.static_strides();
    key.insert(key.end(), strides.begin(), strides.end());
    const auto [before, first] = last.try_emplace(std::move(key), id);
    if (first) continue;
    const NodeId a = leader_[before->second.index];
    const bool near =
        type.numel() <= small_region && (!call_between(a, leader) || (leaves_all(a) && leaves_all(leader)));
    const bool fits = near || is_kept_past(a, leader);
    merges += fits && try_merge({a, leader, bytes(type)}, streams) ? 1 : 0;
    before->second = id;
  }
  return merges;
}

/// Neighbouring pairs of the reductions that read what one region computes: the second parts of sums that were split.
std::vector<FuseGroups::Edge> FuseGroups::reductions_of_one_region() const {
  std::unordered_map<NodeId, NodeId> last;  // by region: the last one that was seen
  std::vector<Edge> pairs;
  for (const NodeId id : graph_.order()) {
    const Node& node = graph_.node(id);
    if (node.as<Reduce>() == nullptr) continue;
    const ValueId operand = kernel::region_operand(graph_, *node.args[0].value()).base;
    const NodeId region = leader_[graph_.value(operand).producer.index];
    if (region == leader_[id.index]) continue;
    const auto [before, first] = last.try_emplace(region, id);
    if (!first) pairs.push_back({std::exchange(before->second, id), id, bytes(graph_.type(operand))});
  }
  return pairs;
}

/// Reductions go through an operand side by side and read it once. Others save a launch; those that read one tensor
/// another way than they go through the others, and the same one, read it once.
bool FuseGroups::try_merge_siblings(const Edge& edge) {
  const NodeId a = leader_[edge.producer.index];
  const NodeId b = leader_[edge.consumer.index];
  if (reduces_[a.index] != reduces_[b.index]) return false;
  if (reduces_[a.index]) return !holds_more(edge) && try_merge(edge);
  if (graph_.device.kind != Device::Kind::cuda || a == b) return false;
  if (call_between(a, b) && !saves_memory(a, b)) return false;
  return try_merge(edge, streams) || (turns(a) && turns(b) && try_merge(edge, turns_one));
}

/// True for a region that reads one tensor another way than it goes through the others.
bool FuseGroups::turns(NodeId leader) const {
  const std::vector<NodeId>& members = members_[leader.index];
  const auto kernel = kernel::try_lower({graph_, members, outputs(members)}, max_region_values);
  return kernel && turns_one(*kernel);
}

bool FuseGroups::try_merge(const Edge& edge, Fits fits, const RegionLimits& limits) {
  const NodeId a = leader_[edge.producer.index];
  const NodeId b = leader_[edge.consumer.index];
  const bool constant = members_[a.index].size() == 1 && is_constant(graph_.node(a));
  if (a == b || (frozen_[a.index] != frozen_[b.index] && !constant)) return false;
  std::vector<NodeId> joined;
  const auto earlier = [&](NodeId x, NodeId y) { return position_[x.index] < position_[y.index]; };
  std::merge(members_[a.index].begin(), members_[a.index].end(), members_[b.index].begin(), members_[b.index].end(),
             std::back_inserter(joined), earlier);
  if (joined.size() > limits.values) return false;
  const std::vector<ValueId> results = outputs(joined);
  if (results.empty() || path_around(a, b)) return false;
  const auto kernel = kernel::try_lower({graph_, joined, results}, limits.values);
  if (!kernel || held_params(*kernel) > limits.params) return false;
  if (has_long_join(graph_, joined, *kernel) || gathers_joined(graph_, *kernel)) return false;
  if (sums_joined_columns(graph_, *kernel) || turns_large_rows(graph_, *kernel)) return false;
  if (kernel->group_rows() > 1 && (generic_sizes_ || !holds_groups(*kernel))) return false;
  if (fits != nullptr && !fits(*kernel)) return false;
  const BeneathJoins beneath = has_guards(*kernel) ? beneath_joins(joined) : BeneathJoins{};
  if (beneath.thrown_away > most_thrown_away) return false;
  const bool slides = slides_as_one(graph_, *kernel);
  if ((slides_[a.index] || slides_[b.index]) && !slides) return false;
  if (computed_again_in_windows(joined) > most_repeated_cost) return false;
  if (!worth_computing_again(members_[a.index], beneath.members, *kernel)) return false;
  for (NodeId id : members_[b.index]) leader_[id.index] = a;
  members_[a.index] = std::move(joined);
  const size_t last = position_[members_[a.index].back().index];
  for (size_t p = position_[members_[a.index].front().index]; p < last; ++p) reach_[p] = std::max(reach_[p], last);
  members_[b.index].clear();
  frozen_[a.index] = frozen_[b.index];
  reduces_[a.index] = reduces_[a.index] || reduces_[b.index];
  slides_[a.index] = slides;
  return true;
}

std::vector<ValueId> FuseGroups::outputs(const std::vector<NodeId>& members) const {
  const std::unordered_set<NodeId> inside(members.begin(), members.end());
  std::vector<ValueId> found;
  for (NodeId id : members) {
    const ValueId value = graph_.node(id).results[0];
    const auto& users = users_[value.index];
    const bool used = escapes_[value.index] ||
                      std::any_of(users.begin(), users.end(), [&](NodeId user) { return !inside.contains(user); });
    if (used) found.push_back(value);
  }
  return found;
}

/// Values smaller than the loop nest are computed again for every point that reads them; those of a row once for it.
/// Regions of many steps repeat as much for each part of the usual size.
bool FuseGroups::worth_computing_again(const std::vector<NodeId>& members,
                                       const std::unordered_set<NodeId>& operands_of_joins,
                                       const kernel::Kernel& kernel) const {
  const int64_t points = kernel.numel();
  const int64_t rows = kernel.reduced > 0 ? kernel.rows() : points;
  int64_t repeated = 0;
  for (NodeId id : members) {
    const int64_t elements = graph_.type(graph_.node(id).results[0]).numel();
    if (elements < points && elements != rows && !operands_of_joins.contains(id)) repeated += cost(graph_.node(id));
  }
  const auto times = static_cast<int64_t>(std::max<size_t>(1, members.size() / max_region_values));
  const bool few_lanes = graph_.device.kind == Device::Kind::cpu && points > points_of_a_launch;
  return repeated <= (few_lanes ? most_repeated_cost_on_cpu : most_repeated_cost) * times;
}

/// Instructions for elements of windows beyond those that computing each element once would take.
int64_t FuseGroups::computed_again_in_windows(const std::vector<NodeId>& members) const {
  const std::unordered_set<NodeId> inside(members.begin(), members.end());
  int64_t again = 0;
  for (NodeId id : members) {
    for (const Arg& arg : graph_.node(id).args) {
      if (arg.value() == nullptr || graph_.producer(*arg.value()).as<View>() == nullptr) continue;
      const int64_t overlap = overlap_of(graph_.type(*arg.value()));
      if (overlap == 1) continue;
      std::unordered_set<NodeId> needed;
      add_producers(*arg.value(), inside, needed);
      for (NodeId producer : needed) {
        const Node& node = graph_.node(producer);
        if (node.as<Primitive>() == nullptr || is_constant(node)) continue;
        again += cost(node) * ceil_div(overlap, windows_of_an_element);
      }
    }
  }
  return again;
}

FuseGroups::BeneathJoins FuseGroups::beneath_joins(const std::vector<NodeId>& members) const {
  BeneathJoins beneath;
  const std::unordered_set<NodeId> inside(members.begin(), members.end());
  for (NodeId id : members) {
    const Node& node = graph_.node(id);
    if (node.as<Join>() == nullptr) continue;
    const auto points = static_cast<double>(graph_.type(node.results[0]).numel());
    for (const Arg& arg : node.args) {
      std::unordered_set<NodeId> needed;
      add_producers(*arg.value(), inside, needed);
      const double elsewhere = 1.0 - static_cast<double>(graph_.type(*arg.value()).numel()) / points;
      for (NodeId producer : needed)
        beneath.thrown_away += elsewhere * static_cast<double>(cost(graph_.node(producer)));
      beneath.members.insert(needed.begin(), needed.end());
    }
  }
  return beneath;
}

/// What of `inside` computes a value, views looked through.
void FuseGroups::add_producers(ValueId value, const std::unordered_set<NodeId>& inside,
                               std::unordered_set<NodeId>& found) const {
  const NodeId producer = graph_.value(kernel::region_operand(graph_, value).base).producer;
  if (!inside.contains(producer) || !found.insert(producer).second) return;
  for (const Arg& arg : graph_.node(producer).args) {
    if (arg.value() != nullptr) add_producers(*arg.value(), inside, found);
  }
}

/// The position after which no path leads back to either region: edges lead to later nodes, and only a region that
/// begins before a position and ends after it leads from after to before.
size_t FuseGroups::no_return_after(NodeId from, NodeId to) const {
  size_t limit = std::max(position_[members_[from.index].back().index], position_[members_[to.index].back().index]);
  while (reach_[limit] > limit) limit = reach_[limit];
  return limit;
}

/// True when a path leaves either region and enters the other through a node outside both.
bool FuseGroups::path_around(NodeId from, NodeId to) const {
  const size_t limit = no_return_after(from, to);
  std::unordered_set<NodeId> seen;
  std::vector<NodeId> stack;
  const auto push_consumers = [&](NodeId leader, bool first) {
    for (NodeId member : members_[leader.index]) {
      for (NodeId consumer : consumers_[member.index]) {
        const NodeId next = leader_[consumer.index];
        if ((first && (next == from || next == to)) || position_[consumer.index] > limit) continue;
        if (seen.insert(next).second) stack.push_back(next);
      }
    }
  };
  push_consumers(from, true);
  push_consumers(to, true);
  while (!stack.empty()) {
    const NodeId unit = stack.back();
    stack.pop_back();
    if (unit == from || unit == to) return true;
    push_consumers(unit, false);
  }
  return false;
}

}  // namespace sinter::passes
