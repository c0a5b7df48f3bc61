#pragma once

#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/kernel/kernel.h"
#include "compiler/passes/region.h"

namespace sinter::passes {

/// A partition of a graph's primitives, reductions and joins into regions. Starts with each of them alone.
class FuseGroups {
 public:
  /// Primitives that are computed once (frozen.h) never join others. `generic_sizes`: kernels take sizes as parameters.
  FuseGroups(const ir::Graph& graph, bool freeze, bool generic_sizes);

  /// Joins regions, those that save most bytes first, until no pair can be joined: consumers with producers, then
  /// those that read one value with each other, and small ones. Returns the number of joins.
  int64_t merge_all();

  /// For every node the node that leads its region; nodes that are no primitives lead themselves. By NodeId.
  [[nodiscard]] const std::vector<ir::NodeId>& leaders() const { return leader_; }
  /// Members of a region, in execution order.
  [[nodiscard]] const std::vector<ir::NodeId>& members(ir::NodeId leader) const { return members_[leader.index]; }
  /// Values of these primitives that something else uses.
  [[nodiscard]] std::vector<ir::ValueId> outputs(const std::vector<ir::NodeId>& members) const;

 private:
  struct Edge {
    ir::NodeId producer;
    ir::NodeId consumer;
    int64_t bytes = 0;
  };

  /// Members of a region that compute operands of its joins.
  struct BeneathJoins {
    std::unordered_set<ir::NodeId> members;
    double thrown_away = 0;  ///< their instructions for one point of a join, on average, where another operand lies
  };

  using Fits = bool (*)(const kernel::Kernel&);

  void collect_edges();
  void collect_siblings();
  void collect_dependencies();
  /// Joins two regions where one kernel within these limits can compute both, should, and where `fits` holds for it.
  bool try_merge(const Edge& edge, Fits fits = nullptr, const RegionLimits& limits = {});
  int64_t merge_full_regions();
  std::vector<Edge> edges_between_regions() const;
  bool worth_computing_again(const std::vector<ir::NodeId>& members,
                             const std::unordered_set<ir::NodeId>& operands_of_joins,
                             const kernel::Kernel& kernel) const;
  int64_t computed_again_in_windows(const std::vector<ir::NodeId>& members) const;
  BeneathJoins beneath_joins(const std::vector<ir::NodeId>& members) const;
  void add_producers(ir::ValueId value, const std::unordered_set<ir::NodeId>& inside,
                     std::unordered_set<ir::NodeId>& found) const;
  [[nodiscard]] bool turns(ir::NodeId leader) const;
  bool try_merge_siblings(const Edge& edge);
  std::vector<Edge> reductions_of_one_region() const;
  int64_t merge_small_regions();
  bool reads_what_is_given(ir::NodeId leader) const;
  bool leaves_all(ir::NodeId leader) const;
  bool is_kept_past(ir::NodeId earlier, ir::NodeId later) const;
  bool call_between(ir::NodeId a, ir::NodeId b) const;
  size_t place_of(ir::NodeId leader) const;
  std::pair<ir::NodeId, ir::NodeId> by_place(ir::NodeId a, ir::NodeId b) const;
  struct Waiting {
    int64_t held = 0, given_later = 0;  ///< bytes
  };
  Waiting waiting(ir::NodeId earlier, ir::NodeId later) const;
  bool hoards(ir::NodeId a, ir::NodeId b) const;
  /// True where joining the regions of an edge would hold much more memory for long.
  bool holds_more(const Edge& edge) const;
  bool overwrites_at(size_t place, ir::NodeId region) const;
  bool is_for_alone(ir::ValueId value, ir::NodeId region, ir::NodeId user) const;
  bool stores_ahead(ir::NodeId a, ir::NodeId b) const;
  int64_t size_of(ir::ValueId value) const;
  bool saves_memory(ir::NodeId a, ir::NodeId b) const;
  bool path_around(ir::NodeId from, ir::NodeId to) const;
  size_t no_return_after(ir::NodeId from, ir::NodeId to) const;

  const ir::Graph& graph_;
  const bool generic_sizes_;
  std::vector<ir::NodeId> leader_;                  ///< by node
  std::vector<std::vector<ir::NodeId>> members_;    ///< by leader
  std::vector<std::vector<ir::NodeId>> consumers_;  ///< by node: nodes that must run later, views looked through
  std::vector<bool> escapes_;                       ///< by value: used by something that is no primitive
  std::vector<bool> is_output_;                     ///< by value: of the graph, views looked through
  std::vector<std::vector<ir::NodeId>> users_;      ///< by value: primitives that use it, views looked through
  std::vector<bool> frozen_;                        ///< by node
  std::vector<bool> reduces_;                       ///< by leader: the region has a reduction
  std::vector<bool> slides_;                        ///< by leader: the region is one kernel of windows that overlap
  std::vector<size_t> position_;                    ///< by node
  std::vector<size_t> calls_before_;                ///< by position: library calls that stand before it
  std::vector<size_t> reach_;                       ///< by position: the last one of regions that begin there or before
  std::vector<Edge> edges_;
  std::vector<Edge> siblings_;  ///< two consumers of one value
};

}  // namespace sinter::passes
