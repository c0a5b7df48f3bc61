#include "compiler/passes/batched_product.h"

#include "compiler/ir/view_source.h"
#include "compiler/passes/aten.h"

namespace sinter::passes {

using namespace ir;

std::optional<BatchedProduct> batched_product(const Graph& graph, const Node& node) {
  if (call_named(node, "aten::bmm", 2) == nullptr) return std::nullopt;
  const auto* left = node.args[0].value();
  const auto* right = node.args[1].value();
  if (left == nullptr || right == nullptr || !graph.type(node.results[0]).is_contiguous()) return std::nullopt;
  const Type& type = graph.type(*right);
  if (!type.is_static() || !graph.type(*left).is_static()) return std::nullopt;
  return BatchedProduct{*left, *right, node.results[0]};
}

namespace {

bool is_along_rows(const Graph& graph, const Node& node, std::string_view op) {
  if (call_named(node, op, 3) == nullptr || node.args[0].value() == nullptr) return false;
  const auto* dim = std::get_if<int64_t>(&node.args[1].data);
  const Type& type = graph.type(node.results[0]);
  return dim != nullptr && (*dim == -1 || *dim == static_cast<int64_t>(type.rank()) - 1) && type.is_contiguous();
}

}  // namespace

bool is_softmax_of_rows(const Graph& graph, const Node& node) { return is_along_rows(graph, node, "aten::_softmax"); }

bool is_safe_softmax_of_rows(const Graph& graph, const Node& node) {
  return is_along_rows(graph, node, "aten::_safe_softmax") &&
         graph.type(*node.args[0].value()).dtype == graph.type(node.results[0]).dtype;
}

std::optional<ValueId> behind_reshapes(const Graph& graph, std::span<const uint32_t> uses, ValueId value) {
  while (uses[value.index] == 1) {
    if (!is_reshape(graph, value)) return value;
    value = *graph.producer(value).args[0].value();
  }
  return std::nullopt;
}

}  // namespace sinter::passes
