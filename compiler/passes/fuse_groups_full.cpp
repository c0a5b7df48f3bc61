#include <algorithm>
#include <array>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/kernel/registers.h"
#include "compiler/passes/fuse_groups.h"

/// Regions that are full, joined further where one kernel keeps what it computes in registers.
namespace sinter::passes {

using namespace ir;

namespace {

/// Instructions of a kernel that is soon built (docs/kernels.md).
constexpr size_t most_instructions = 4096;
/// Parameters of a kernel, a pointer each: not every driver takes more than 4,096 bytes.
constexpr size_t most_pointers = 384;
constexpr RegionLimits limits_of_many_steps{.values = most_instructions, .params = most_pointers};
/// Registers of a thread with which a multiprocessor holds four warps for each of its schedulers.
constexpr int64_t most_registers = 128;

/// Elements that a thread computes side by side: 16 bytes of the widest that it reads or writes.
int64_t elements_at_once(const kernel::Kernel& kernel) {
  int64_t widest = 1;
  for (const kernel::Param& param : kernel.params) widest = std::max(widest, bytes_of(param.dtype));
  return 16 / widest;
}

/// True for a kernel that keeps what it computes in registers, however many steps it takes: it goes through its body
/// once, in order, and is built soon.
bool runs_in_order(const kernel::Kernel& kernel) {
  const bool in_order = kernel.reduced == 0 ? !has_guards(kernel) : kernel::has_short_rows(kernel);
  return in_order && kernel.body.size() <= most_instructions && kernel.params.size() <= most_pointers &&
         kernel::registers_in_order(kernel, elements_at_once(kernel)) <= most_registers;
}

}  // namespace

/// Regions that have become as large as may be step by step, where one kernel goes on with what another one computed:
/// the steps of a recurrence that is written out. In each round a region is joined once at most, and small ones first,
/// so that the work is linear but for the number of rounds, about a logarithm.
int64_t FuseGroups::merge_full_regions() {
  if (graph_.device.kind != Device::Kind::cuda || generic_sizes_) return 0;
  int64_t merges = 0;
  std::set<std::array<size_t, 4>> refused;  // two regions, and how many members they had
  for (bool changed = true; changed;) {
    changed = false;
    std::unordered_set<NodeId> joined;
    for (const Edge& edge : edges_between_regions()) {
      const NodeId a = leader_[edge.producer.index];
      const NodeId b = leader_[edge.consumer.index];
      if (joined.contains(a) || joined.contains(b)) continue;
      const std::array<size_t, 4> pair{a.index, b.index, members_[a.index].size(), members_[b.index].size()};
      if (refused.contains(pair)) continue;
      if (holds_more(edge) || !try_merge(edge, runs_in_order, limits_of_many_steps)) {
        refused.insert(pair);
        continue;
      }
      joined.insert({a, b});
      changed = true;
      ++merges;
    }
  }
  return merges;
}

/// Those that lead from one region to another, by members of both, one for each pair.
std::vector<FuseGroups::Edge> FuseGroups::edges_between_regions() const {
  std::vector<std::pair<size_t, Edge>> found;
  std::set<std::pair<NodeId, NodeId>> pairs;
  for (const Edge& edge : edges_) {
    const NodeId a = leader_[edge.producer.index];
    const NodeId b = leader_[edge.consumer.index];
    if (a == b || !pairs.insert({a, b}).second) continue;
    found.emplace_back(members_[a.index].size() + members_[b.index].size(), edge);
  }
  std::ranges::stable_sort(found, {}, &std::pair<size_t, Edge>::first);
  std::vector<Edge> edges;
  for (const auto& [size, edge] : found) edges.push_back(edge);
  return edges;
}

}  // namespace sinter::passes
