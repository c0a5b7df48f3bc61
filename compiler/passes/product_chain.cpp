#include "compiler/passes/product_chain.h"

#include <array>
#include <cstddef>
#include <utility>

#include "compiler/ir/view_source.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/product.h"

namespace sinter::passes {

using namespace ir;

bool is_vector_along(const Type& vector, const Type& product) {
  return vector.rank() == 1 && vector.dtype == product.dtype && vector.is_contiguous() &&
         vector.sizes[0] == product.sizes.back();
}

std::optional<std::array<Arg, 2>> summands_of(const Node& node) {
  if (call_named(node, "aten::add.Tensor", 3) == nullptr || node.args[2] != Arg{int64_t{1}}) return std::nullopt;
  return std::array{node.args[0], node.args[1]};
}

ProductChains::ProductChains(const Graph& graph, Accepts accepts)
    : graph_(graph), accepts_(std::move(accepts)), uses_(use_counts(graph)) {}

std::optional<BiasedProduct> ProductChains::at(const Node& node) const {
  if (is_accepted(node)) return BiasedProduct{&node, product_of(node)->bias};
  const auto summands = summands_of(node);
  if (!summands || !is_own(node)) return std::nullopt;
  for (const size_t side : {0, 1}) {
    const Node* behind = read_once((*summands)[side]);
    const ValueId* bias = (*summands)[1 - side].value();
    if (behind == nullptr || bias == nullptr || !is_accepted(*behind) || product_of(*behind)->bias) continue;
    const Type& product = graph_.type(behind->results[0]);
    const bool same_rows = graph_.type(node.results[0]).sizes.back() == product.sizes[1];
    if (same_rows && is_vector_along(graph_.type(*bias), product)) return BiasedProduct{behind, *bias};
  }
  return std::nullopt;
}

const Node* ProductChains::read_once(const Arg& arg) const {
  if (arg.value() == nullptr) return nullptr;
  ValueId value = *arg.value();
  while (uses_[value.index] == 1 && is_reshape(graph_, value)) value = *graph_.producer(value).args[0].value();
  const Node& node = graph_.producer(value);
  return uses_[value.index] == 1 && is_own(node) ? &node : nullptr;
}

bool ProductChains::is_own(const Node& node) const {
  return node.results.size() == 1 && !graph_.value(node.results[0]).alias &&
         graph_.type(node.results[0]).is_contiguous();
}

bool ProductChains::is_accepted(const Node& node) const {
  const auto product = product_of(node);
  if (!product || !is_own(node) || !accepts_(node)) return false;
  return !product->bias || is_vector_along(graph_.type(*product->bias), graph_.type(node.results[0]));
}

}  // namespace sinter::passes
