#include "compiler/passes/measured_products.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/passes/aten.h"
#include "compiler/passes/library_product.h"
#include "compiler/passes/product.h"
#include "compiler/passes/product_chain.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// A product of matrices or of batches of them, without anything added but a vector, or one that the library has.
std::optional<LibraryProduct> measurable(const Graph& graph, const Node& node) {
  const auto* call = node.as<Call>();
  if (call == nullptr || node.results.size() != 1 || graph.value(node.results[0]).alias) return std::nullopt;
  if (const auto product = library_product_of(call->op, node.args)) return product;
  std::optional<LibraryProduct> found;
  if (const auto product = product_of(node)) {
    found = LibraryProduct{.left = product->left, .right = product->right, .bias = product->bias, .summand = {}};
  } else if (call_named(node, "aten::bmm", 2) != nullptr) {
    found = LibraryProduct{.left = *node.args[0].value(), .right = *node.args[1].value(), .bias = {}, .summand = {}};
  }
  if (!found) return std::nullopt;
  const Type& result = graph.type(node.results[0]);
  const bool served = has_library_product(graph.type(found->left), graph.type(found->right), result);
  if (!served || !result.is_contiguous()) return std::nullopt;
  if (found->bias && !is_vector_along(graph.type(*found->bias), result)) return std::nullopt;
  return found;
}

ValueId as_call(Rewriter& rewrite, const Node& node, LibraryProduct product, double seconds) {
  const Type type = rewrite.old().type(node.results[0]);
  product.left = rewrite.get(product.left);
  product.right = rewrite.get(product.right);
  if (product.bias) product.bias = rewrite.get(*product.bias);
  if (product.summand) product.summand = rewrite.get(*product.summand);
  product.seconds = seconds;
  auto [call, args] = call_of(product);
  return rewrite.add(std::move(call), std::move(args), type, node.scope);
}

}  // namespace

PassResult measured_products(Graph& graph, const PassContext& context) {
  if (!context.fast_on_cuda() || !(context.measuring_seconds > 0)) return {};
  const auto products = std::ranges::count_if(
      graph.order(), [&graph](NodeId id) { return measurable(graph, graph.node(id)).has_value(); });
  if (products == 0) return {};
  const double seconds = context.measuring_seconds / static_cast<double>(products);
  return rewrite_first_results(graph, [&](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    const auto product = measurable(rewrite.old(), node);
    return product ? std::optional(as_call(rewrite, node, *product, seconds)) : std::nullopt;
  });
}

}  // namespace sinter::passes
