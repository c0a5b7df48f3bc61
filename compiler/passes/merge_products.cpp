#include "compiler/passes/merge_products.h"

#include <map>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/view_source.h"
#include "compiler/passes/product_groups.h"
#include "compiler/passes/region.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// Builds the graph in which every group is one product.
class ProductMerger {
 public:
  ProductMerger(const Graph& old, std::span<const std::vector<MergedPart>> groups)
      : rewrite_(old), groups_(groups), part_of_(old.value_count()), merged_(groups.size()) {
    for (size_t group = 0; group < groups.size(); ++group) {
      for (const MergedPart& part : groups[group]) part_of_[old.node(part.node).results[0].index] = Place{&part, group};
    }
    for (const NodeId id : old.order()) {
      if (old.node(id).as<View>()) continue;
      for (const Arg& arg : old.node(id).args) for_each_value(arg, [&](ValueId value) { read_.insert(value); });
    }
  }

  Graph run() {
    for (const NodeId id : old().order()) visit(id);
    return rewrite_.finish();
  }

 private:
  struct Place {
    const MergedPart* part = nullptr;
    size_t group = 0;
  };

  [[nodiscard]] const Graph& old() const { return rewrite_.old(); }

  void visit(NodeId id) {
    const Node& node = old().node(id);
    if (node.results.empty()) {
      rewrite_.copy(id);
      return;
    }
    const ValueId value = node.results[0];
    if (rewrite_.get(value).valid()) return;  // a weight that was needed before
    if (part_of_[value.index].part != nullptr) return visit_product(value);
    const ViewSource source = view_source(old(), value);
    const Place& place = part_of_[source.base.index];
    if (!source.is_view || place.part == nullptr || place.part->copied) {
      rewrite_.copy(id);
    } else if (read_.contains(value)) {
      see(value, place);
    }
  }

  void visit_product(ValueId value) {
    const Place& place = part_of_[value.index];
    if (!merged_[place.group].valid()) merged_[place.group] = merge(groups_[place.group]);
    if (place.part->copied || read_.contains(value)) see(value, place);
    if (!place.part->copied) return;
    const ScopeId scope = old().node(place.part->node).scope;
    const ValueId view = rewrite_.get(value);
    rewrite_.next().value(view).hint.clear();
    rewrite_.set(value, rewrite_.add(Primitive{op_named("cast")}, {{view}}, old().type(value), scope));
  }

  /// From here on, the old value is a view of the wider product.
  void see(ValueId value, const Place& place) {
    const int64_t offset = view_source(old(), value).offset;
    PlacedView view = among_columns({old().type(value), offset}, place.part->columns);
    const ScopeId scope = old().producer(value).scope;
    rewrite_.set(value, rewrite_.add(View{view.offset}, {{merged_[place.group]}}, std::move(view.type), scope));
  }

  /// The wider product, where the first of the group stands: the other operands of all are computed once.
  ValueId merge(const std::vector<MergedPart>& group) {
    const Node& leader = old().node(group.front().node);
    std::vector<NodeId> nodes;
    std::vector<ValueId> right;
    std::vector<ValueId> bias;
    for (const MergedPart& part : group) {
      nodes.push_back(part.node);
      right.push_back(part.product.right);
      if (part.product.bias) bias.push_back(*part.product.bias);
    }
    Graph& next = rewrite_.next();
    const ValueId wide = join_right(right, leader.scope);
    std::vector<Arg> args = leader.args;
    if (!bias.empty()) args.at(0) = {join(bias, 0, leader.scope)};
    args.at(bias.empty() ? 0 : 1) = {rewrite_.get(group.front().product.left)};
    args.at(bias.empty() ? 1 : 2) = {wide};
    const Type& left = old().type(group.front().product.left);
    Type type = contiguous(left.dtype, {left.sizes[0], next.type(wide).sizes[1]}, left.device);
    const ScopeId scope = next.scope(joined_scope(old(), nodes));
    const ValueId merged = next.add1(*leader.as<Call>(), std::move(args), std::move(type), scope);
    next.value(merged).hint = "merged";
    return merged;
  }

  /// The right operands side by side, in the order in memory that they have.
  ValueId join_right(const std::vector<ValueId>& right, ScopeId scope) {
    if (!is_transposed(old().type(right.front()))) return join(right, 1, scope);
    std::vector<ValueId> weights;
    for (const ValueId value : right) weights.push_back(transposed(need(value), scope));
    return transposed(join_new(weights, 0, scope), scope);
  }

  ValueId join(const std::vector<ValueId>& values, uint32_t dim, ScopeId scope) {
    std::vector<ValueId> needed;
    for (const ValueId value : values) needed.push_back(need(value));
    return join_new(needed, dim, scope);
  }

  /// The same for values of the new graph, once for the same values.
  ValueId join_new(const std::vector<ValueId>& values, uint32_t dim, ScopeId scope) {
    const auto [entry, added] = joined_.try_emplace({values, dim});
    if (!added) return entry->second;
    const Type& leader = rewrite_.next().type(values.front());
    std::vector<Dim> sizes = leader.sizes;
    sizes[dim] = 0;
    for (const ValueId value : values) sizes[dim] = sizes[dim] + rewrite_.next().type(value).sizes[dim];
    Type type = contiguous(leader.dtype, std::move(sizes), leader.device);
    std::vector<Arg> args;
    for (const ValueId value : values) args.push_back({value});
    return entry->second = rewrite_.add(Join{dim}, std::move(args), std::move(type), scope);
  }

  /// The transpose of a matrix of the new graph; the value that the matrix is a transpose of, where it is one.
  ValueId transposed(ValueId matrix, ScopeId scope) {
    Graph& next = rewrite_.next();
    const ViewSource source = view_source(next, matrix);
    Type type = next.type(matrix);
    std::swap(type.sizes[0], type.sizes[1]);
    std::swap(type.strides[0], type.strides[1]);
    if (source.offset == 0 && next.type(source.base) == type) return source.base;
    const auto [entry, added] = transposed_.try_emplace(matrix);
    if (added) entry->second = rewrite_.add(View{source.offset}, {{source.base}}, std::move(type), scope);
    return entry->second;
  }

  /// What stands for an operand that is computed once: here already, where it was not needed before.
  ValueId need(ValueId value) {
    if (rewrite_.get(value).valid()) return rewrite_.get(value);
    const NodeId producer = old().value(value).producer;
    for (const Arg& arg : old().node(producer).args) for_each_value(arg, [&](ValueId operand) { need(operand); });
    rewrite_.copy(producer);
    return rewrite_.get(value);
  }

  Rewriter rewrite_;
  std::span<const std::vector<MergedPart>> groups_;
  std::vector<Place> part_of_;        ///< by old value
  std::vector<ValueId> merged_;       ///< by group: its product in the new graph, once it stands there
  std::unordered_set<ValueId> read_;  ///< old values that others than views use
  std::map<std::pair<std::vector<ValueId>, uint32_t>, ValueId> joined_;
  std::unordered_map<ValueId, ValueId> transposed_;
};

}  // namespace

PassResult merge_products(Graph& graph, const PassContext& context) {
  const bool applies = context.device.backend == Backend::cuda && context.freeze && !context.generic_sizes &&
                       context.numerics != Numerics::eager;
  if (!applies) return {};
  const std::vector<std::vector<MergedPart>> groups = product_groups(graph, context.freeze);
  if (groups.empty()) return {};
  PassResult result;
  for (const auto& group : groups) result.changes += static_cast<int64_t>(group.size()) - 1;
  Graph next = ProductMerger(graph, groups).run();
  graph = std::move(next);
  return result;
}

}  // namespace sinter::passes
