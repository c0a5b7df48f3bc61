#include "compiler/passes/join_parts.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/ir/op_types.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// All of a tensor but for one dim, of which it is a range.
struct Part {
  size_t dim = 0;
  int64_t begin = 0, length = 0;

  bool operator==(const Part&) const = default;
  [[nodiscard]] int64_t end() const { return begin + length; }
  [[nodiscard]] bool overlaps(const Part& other) const {
    return dim != other.dim || (begin < other.end() && other.begin < end());
  }
};

/// Parts along one dim that do not overlap.
class Cover {
 public:
  /// False for a part that overlaps another one; one may come twice.
  [[nodiscard]] bool add(const Part& part) {
    if (!parts_.empty() && parts_.begin()->second.dim != part.dim) return false;
    const auto behind = parts_.lower_bound(part.begin);
    if (behind != parts_.end() && behind->second == part) return true;
    const bool meets_next = behind != parts_.end() && behind->second.overlaps(part);
    const bool meets_last = behind != parts_.begin() && std::prev(behind)->second.overlaps(part);
    if (meets_next || meets_last) return false;
    parts_.emplace_hint(behind, part.begin, part);
    length_ += part.length;
    return true;
  }
  [[nodiscard]] int64_t length() const { return length_; }
  [[nodiscard]] size_t count() const { return parts_.size(); }

 private:
  std::map<int64_t, Part> parts_;  ///< by begin
  int64_t length_ = 0;
};

struct PartWrite {
  NodeId node;
  ValueId base, source, result;
  Part part;
};

using Steps = std::vector<std::pair<int64_t, int64_t>>;  ///< size and stride of dims, those that lie in one step joined

Steps steps_of(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  Steps steps;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1) continue;
    if (!steps.empty() && steps.back().second == sizes[i] * strides[i]) {
      steps.back() = {steps.back().first * sizes[i], strides[i]};
    } else {
      steps.emplace_back(sizes[i], strides[i]);
    }
  }
  return steps;
}

/// The part of a contiguous tensor that lies so; nothing where it is no range of a dim.
std::optional<Part> part_of(const Type& whole, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                            int64_t offset) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  const Steps found = steps_of(sizes, strides);
  auto part_sizes = whole.static_sizes();
  const auto whole_strides = whole.static_strides();
  for (size_t dim = 0; dim < part_sizes.size(); ++dim) {
    const int64_t size = part_sizes[dim], elsewhere = whole.numel() / size;
    if (size == 1 || count % elsewhere != 0 || offset % whole_strides[dim] != 0) continue;
    const Part part{dim, offset / whole_strides[dim], count / elsewhere};
    if (part.length == 0 || part.begin + part.length > size) continue;
    part_sizes[dim] = part.length;
    if (steps_of(part_sizes, whole_strides) == found) return part;
    part_sizes[dim] = size;
  }
  return std::nullopt;
}

/// A join holds all parts until the last is there; parts of larger tensors are worth a copy each.
constexpr int64_t most_bytes = int64_t{1} << 24;

bool can_be_joined(const Type& type) {
  return type.is_static() && type.numel() > 0 && type.is_contiguous() &&
         type.numel() * bytes_of(type.dtype) <= most_bytes;
}

std::optional<PartWrite> part_write(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (call_named(node, scatter, 5) == nullptr) return std::nullopt;
  const auto *base = node.args[0].value(), *source = node.args[1].value();
  const auto sizes = integers_in(node.args[2]), strides = integers_in(node.args[3]);
  const auto* offset = std::get_if<int64_t>(&node.args[4].data);
  if (base == nullptr || source == nullptr || !sizes || !strides || offset == nullptr) return std::nullopt;
  const Type& whole = graph.type(*base);
  if (!can_be_joined(whole) || graph.type(node.results[0]) != whole) return std::nullopt;
  const Type& written = graph.type(*source);
  if (!written.is_static() || !written.is_contiguous() || written.dtype != whole.dtype ||
      written.device != whole.device)
    return std::nullopt;
  const auto part = part_of(whole, *sizes, *strides, *offset);
  if (!part) return std::nullopt;
  return PartWrite{id, *base, *source, node.results[0], *part};
}

/// Where the values of a graph are read.
struct Uses {
  explicit Uses(const Graph& graph) : by_value(graph.value_count()), is_output(graph.value_count()) {
    for (const NodeId id : graph.order()) {
      for (const Arg& arg : graph.node(id).args) {
        for_each_value(arg, [&](ValueId value) { by_value[value.index].push_back(id); });
      }
    }
    for (const ValueId output : graph.outputs) is_output[output.index] = true;
  }

  std::vector<std::vector<NodeId>> by_value;
  std::vector<bool> is_output;
};

/// Writes that cover a tensor, the last one first; the base of the last in the list is what the tensor was before.
using Chain = std::vector<PartWrite>;

/// What stands for values when chains are joined.
struct Joins {
  std::unordered_map<uint32_t, std::vector<PartWrite>> parts;  ///< for the last write: the last of each part, in order
  std::unordered_map<uint32_t, ValueId> values;                ///< for views: what was written there
  std::unordered_map<uint32_t, ValueId> bases;                 ///< for views: what was there before, seen the same way
};

class ChainFinder {
 public:
  explicit ChainFinder(const Graph& graph) : graph_(graph), uses_(graph) {}

  Joins find() {
    const auto& order = graph_.order();
    for (size_t i = order.size(); i-- > 0;) {
      if (!seen_.contains(order[i].index)) follow(part_write(graph_, order[i]));
    }
    return std::move(joins_);
  }

 private:
  /// Joins the longest chain of writes to like parts that ends with one, or the shortest that covers the tensor.
  void follow(std::optional<PartWrite> write) {
    Chain chain;
    Cover cover;
    size_t covers = 0;  // so many writes
    for (; write && cover.add(write->part); write = part_write(graph_, graph_.value(write->base).producer)) {
      seen_.insert(write->node.index);
      chain.push_back(*write);
      const bool whole = cover.length() == graph_.type(write->base).sizes[write->part.dim].value();
      if (whole && covers == 0) covers = chain.size();
    }
    if (covers == 0 || cover.count() == 1 || add(chain)) return;
    chain.resize(covers);
    (void)add(chain);
  }

  /// False where somebody reads what a join cannot give.
  [[nodiscard]] bool add(const Chain& chain) {
    Joins found;
    for (size_t i = 0; i < chain.size(); ++i) {
      if (!note_reads(chain, i, found)) return false;
    }
    std::map<int64_t, PartWrite> by_begin;
    for (const PartWrite& write : chain) by_begin.emplace(write.part.begin, write);  // the last write of each stays
    std::vector<PartWrite> parts;
    for (const auto& [begin, write] : by_begin) parts.push_back(write);
    joins_.parts.emplace(chain.front().result.index, std::move(parts));
    joins_.values.merge(found.values);
    joins_.bases.merge(found.bases);
    return true;
  }

  /// False where somebody reads what a write of the chain gives in a way that a join cannot give.
  [[nodiscard]] bool note_reads(const Chain& chain, size_t at, Joins& found) const {
    const PartWrite& write = chain[at];
    const bool last = at == 0;
    if (!last && uses_.is_output[write.result.index]) return false;
    for (const NodeId id : uses_.by_value[write.result.index]) {
      const Node& user = graph_.node(id);
      if (const auto* view = user.as<View>()) {
        if (!note_view(chain, at, user, *view, found) && !last) return false;
      } else if (!last && (id != chain[at - 1].node || chain[at - 1].source == write.result)) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] bool note_view(const Chain& chain, size_t at, const Node& node, const View& view, Joins& found) const {
    const ValueId seen = node.results[0];
    const Type& type = graph_.type(seen);
    const Type& whole = graph_.type(chain[at].base);
    if (!type.is_static() || type.numel() == 0 || type.dtype != whole.dtype) return false;
    const auto part = part_of(whole, type.static_sizes(), type.static_strides(), view.offset);
    if (!part || !is_read_only(seen)) return false;
    for (size_t i = at; i < chain.size(); ++i) {
      if (!chain[i].part.overlaps(*part)) continue;
      if (chain[i].part != *part || !may_read(seen, chain[i].source)) return false;
      found.values.emplace(seen.index, chain[i].source);
      return true;
    }
    found.bases.emplace(seen.index, chain.back().base);
    return true;
  }

  /// Whether nobody sees the memory of a value, or shares it.
  [[nodiscard]] bool is_read_only(ValueId value) const {
    return !uses_.is_output[value.index] && std::ranges::none_of(uses_.by_value[value.index], [&](NodeId id) {
      return graph_.node(id).as<View>() != nullptr || graph_.node(id).as<ir::Write>() != nullptr;
    });
  }

  /// Whether all that read a view of a part may read what was written there: it may lie otherwise.
  [[nodiscard]] bool may_read(ValueId seen, ValueId source) const {
    const Type &type = graph_.type(seen), &written = graph_.type(source);
    if (type.sizes != written.sizes) return false;
    if (type.strides == written.strides) return true;
    return std::ranges::all_of(uses_.by_value[seen.index], [&](NodeId id) {
      const Node& user = graph_.node(id);
      const auto* call = user.as<Call>();
      if (call == nullptr) return false;
      const auto* base = call->op == scatter ? user.args[0].value() : nullptr;
      return find_aten(call->op) || (base != nullptr && *base != seen);
    });
  }

  const Graph& graph_;
  const Uses uses_;
  Joins joins_;
  std::unordered_set<uint32_t> seen_;  ///< writes that were followed
};

/// A part's value, seen with the dims of the whole tensor.
ValueId with_dims_of(Rewriter& rewrite, const Type& whole, const PartWrite& write, ScopeId scope) {
  const ValueId value = rewrite.get(write.source);
  std::vector<Dim> sizes = whole.sizes;
  sizes[write.part.dim] = Dim(write.part.length);
  if (rewrite.next().type(value).sizes == sizes) return value;
  return rewrite.add(View{0}, {{value}}, contiguous(whole.dtype, std::move(sizes), whole.device), scope);
}

ValueId joined(Rewriter& rewrite, const std::vector<PartWrite>& writes, const Node& node) {
  const Type whole = rewrite.old().type(node.results[0]);
  ArgList parts;
  for (const PartWrite& write : writes) parts.push_back({with_dims_of(rewrite, whole, write, node.scope)});
  const auto dim = static_cast<int64_t>(writes.front().part.dim);
  return rewrite.add(Call{"aten::cat", {}, {}, false, false}, {{std::move(parts)}, {dim}}, whole, node.scope);
}

}  // namespace

PassResult join_parts(Graph& graph, const PassContext&) {
  const Joins joins = ChainFinder(graph).find();
  return rewrite_first_results(graph, [&](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    if (node.results.empty()) return std::nullopt;
    const uint32_t result = node.results[0].index;
    const auto parts = joins.parts.find(result);
    if (parts != joins.parts.end()) return joined(rewrite, parts->second, node);
    if (const auto value = joins.values.find(result); value != joins.values.end()) return rewrite.get(value->second);
    const auto base = joins.bases.find(result);
    if (base == joins.bases.end()) return std::nullopt;
    return rewrite.add(*node.as<View>(), {{rewrite.get(base->second)}}, Type(rewrite.old().type(node.results[0])),
                       node.scope);
  });
}

}  // namespace sinter::passes
