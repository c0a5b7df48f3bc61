#include "compiler/passes/measured_products.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/passes/aten.h"
#include "compiler/passes/library_product.h"
#include "compiler/passes/product.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

bool is_library_product(const Node& node) { return call_named(node, library_product, 6) != nullptr; }

/// A product of matrices or of batches of them, without anything added but a vector.
std::optional<LibraryProduct> measurable(const Graph& graph, const Node& node) {
  if (node.results.size() != 1 || graph.value(node.results[0]).alias) return std::nullopt;
  std::optional<LibraryProduct> found;
  if (const auto product = product_of(node)) {
    found = LibraryProduct{.left = product->left, .right = product->right, .bias = product->bias, .summand = {}};
  } else if (call_named(node, "aten::bmm", 2) != nullptr) {
    found = LibraryProduct{.left = *node.args[0].value(), .right = *node.args[1].value(), .bias = {}, .summand = {}};
  }
  if (!found) return std::nullopt;
  const Type& result = graph.type(node.results[0]);
  const bool one_dtype =
      graph.type(found->left).dtype == result.dtype && graph.type(found->right).dtype == result.dtype;
  if (!one_dtype || !has_library_product(result) || !result.is_contiguous()) return std::nullopt;
  if (found->bias) {
    const Type& bias = graph.type(*found->bias);
    const bool fits =
        bias.rank() == 1 && bias.dtype == result.dtype && bias.is_contiguous() && bias.sizes[0] == result.sizes.back();
    if (!fits) return std::nullopt;
  }
  return found;
}

bool is_measured(const Graph& graph, const Node& node) { return is_library_product(node) || measurable(graph, node); }

ValueId as_call(Rewriter& rewrite, const Node& node, double seconds) {
  const Type type = rewrite.old().type(node.results[0]);
  if (is_library_product(node)) {
    std::vector<Arg> args = rewrite.map_args(node.args);
    args[library_product_seconds] = {seconds};
    return rewrite.add(*node.as<Call>(), std::move(args), type, node.scope);
  }
  LibraryProduct product = *measurable(rewrite.old(), node);
  product.left = rewrite.get(product.left);
  product.right = rewrite.get(product.right);
  if (product.bias) product.bias = rewrite.get(*product.bias);
  product.seconds = seconds;
  auto [call, args] = call_of(product);
  return rewrite.add(std::move(call), std::move(args), type, node.scope);
}

}  // namespace

PassResult measured_products(Graph& graph, const PassContext& context) {
  if (!context.fast_on_cuda() || !(context.measuring_seconds > 0)) return {};
  const auto products =
      std::ranges::count_if(graph.order(), [&graph](NodeId id) { return is_measured(graph, graph.node(id)); });
  if (products == 0) return {};
  const double seconds = context.measuring_seconds / static_cast<double>(products);
  return rewrite_first_results(graph, [&](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    return is_measured(rewrite.old(), node) ? std::optional(as_call(rewrite, node, seconds)) : std::nullopt;
  });
}

}  // namespace sinter::passes
