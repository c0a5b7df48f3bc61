#include "compiler/passes/product_groups.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "compiler/ir/view_source.h"
#include "compiler/passes/frozen.h"
#include "compiler/passes/pointwise.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// A kernel that lays weights side by side asks every one of them at every point.
constexpr size_t most_merged = 8;
constexpr int64_t most_weight_bytes = int64_t{256} << 20;  ///< of one product
constexpr int64_t most_bytes_in_all = int64_t{2} << 30;    ///< of all of a graph
/// Kernels and libraries count elements of larger results in 64 bits.
constexpr int64_t most_elements = std::numeric_limits<int32_t>::max();

int64_t columns_of(const Graph& graph, const MergedPart& part) {
  return graph.type(part.product.right).sizes[1].value();
}

bool is_matrix_of(const Type& type, const Type& result) {
  return type.rank() == 2 && type.is_static() && type.dtype == result.dtype && type.device == result.device;
}

/// Finds what can be joined.
class ProductGroups {
 public:
  ProductGroups(const Graph& graph, bool freeze) : graph_(graph), frozen_(frozen_nodes(graph, freeze)) {}

  /// Products that become one each, in the graph's order.
  std::vector<std::vector<MergedPart>> find() {
    std::vector<bool> results(graph_.value_count(), false);
    const std::vector<uint32_t> uses = use_counts(graph_);
    for (const NodeId id : graph_.order()) {
      const auto product = product_of(graph_.node(id));
      if (!product || !can_merge(id, *product) || uses[graph_.node(id).results[0].index] == 0) continue;
      by_key_[key_of(*product)].push_back({id, *product, {}});
      results[graph_.node(id).results[0].index] = true;
    }
    const std::vector<ColumnsNeed> needs = columns_needs(graph_, results);
    for (auto& [key, parts] : by_key_) {
      leave_copies(parts, needs);
      split(parts);
    }
    return std::move(groups_);
  }

 private:
  /// What products of one group share: the left operand, as memory and how it is seen; whether there is a bias; the
  /// order of the right operand in memory.
  using Key = std::tuple<ValueId, int64_t, std::vector<int64_t>, std::vector<int64_t>, bool, bool>;

  [[nodiscard]] Key key_of(const Product& product) const {
    const ViewSource left = view_source(graph_, product.left);
    const Type& type = graph_.type(product.left);
    return {left.base,
            left.offset,
            type.static_sizes(),
            type.static_strides(),
            product.bias.has_value(),
            is_transposed(graph_.type(product.right))};
  }

  [[nodiscard]] bool is_kept(ValueId value) const {
    return frozen_[graph_.value(value).producer.index] && is_kernel_operand(graph_, {value});
  }

  [[nodiscard]] bool can_merge(NodeId id, const Product& product) const {
    const Value& value = graph_.value(graph_.node(id).results[0]);
    const Type& result = value.type;
    const Type& right = graph_.type(product.right);
    if (frozen_[id.index] || value.alias || !is_float(result.dtype) || result.device != graph_.device) return false;
    if (!is_kernel_result(graph_, result) || !result.is_contiguous() || result.numel() == 0) return false;
    if (!is_matrix_of(graph_.type(product.left), result) || !is_matrix_of(right, result)) return false;
    if (right.strides[0] != Dim(1) && right.strides[1] != Dim(1)) return false;
    if (!is_kept(product.right) || (product.bias && !is_bias(*product.bias, result))) return false;
    return result.sizes[1].value() * bytes_of(result.dtype) % full_alignment == 0;
  }

  [[nodiscard]] bool is_bias(ValueId bias, const Type& result) const {
    const Type& type = graph_.type(bias);
    return is_kept(bias) && type.rank() == 1 && type.dtype == result.dtype && type.sizes[0] == result.sizes[1];
  }

  /// Marks what has to be copied; of those that need kernels for that alone, more than one stay apart.
  void leave_copies(std::vector<MergedPart>& parts, const std::vector<ColumnsNeed>& needs) const {
    const auto need = [&](const MergedPart& part) { return needs[graph_.node(part.node).results[0].index]; };
    const auto own = [&](const MergedPart& part) { return need(part) == ColumnsNeed::own_copy; };
    if (std::ranges::count_if(parts, own) > 1) std::erase_if(parts, own);
    for (MergedPart& part : parts) part.copied = need(part) != ColumnsNeed::nothing;
  }

  /// Cuts products of one left operand into groups within the limits.
  void split(const std::vector<MergedPart>& parts) {
    std::vector<MergedPart> group;
    int64_t columns = 0;
    const auto close = [&] {
      if (group.size() > 1) add_group(std::move(group), columns);
      group.clear();
      columns = 0;
    };
    for (const MergedPart& part : parts) {
      const int64_t more = columns_of(graph_, part);
      if (group.size() == most_merged || !fits(part.product, columns + more)) close();
      group.push_back(part);
      columns += more;
    }
    close();
  }

  [[nodiscard]] int64_t weight_bytes(const Product& product, int64_t columns) const {
    const Type& left = graph_.type(product.left);
    return left.sizes[1].value() * columns * bytes_of(left.dtype);
  }

  [[nodiscard]] bool fits(const Product& product, int64_t columns) const {
    const int64_t height = graph_.type(product.left).sizes[0].value();
    return weight_bytes(product, columns) <= most_weight_bytes && height * columns <= most_elements;
  }

  void add_group(std::vector<MergedPart> group, int64_t columns) {
    const int64_t bytes = weight_bytes(group.front().product, columns);
    if (bytes_in_all_ + bytes > most_bytes_in_all) return;
    bytes_in_all_ += bytes;
    const bool one_row = graph_.type(group.front().product.left).sizes[0] == Dim(1);
    int64_t begin = 0;
    for (MergedPart& part : group) {
      const int64_t width = columns_of(graph_, part);
      part.columns = {begin, width, one_row ? width : columns};
      begin += width;
    }
    groups_.push_back(std::move(group));
  }

  const Graph& graph_;
  std::vector<bool> frozen_;
  std::map<Key, std::vector<MergedPart>> by_key_;
  int64_t bytes_in_all_ = 0;  ///< of weights side by side
  std::vector<std::vector<MergedPart>> groups_;
};

}  // namespace

std::vector<std::vector<MergedPart>> product_groups(const Graph& graph, bool freeze) {
  return ProductGroups(graph, freeze).find();
}

bool is_transposed(const Type& right) { return right.strides[0] == Dim(1); }

}  // namespace sinter::passes
