#include "compiler/passes/product_epilogues.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "compiler/ir/view_source.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/library_product.h"
#include "compiler/passes/product.h"
#include "compiler/passes/product_chain.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// Bytes of a sum from which on two passes over it less are worth more than a longer product.
constexpr int64_t fewest_summed_bytes = int64_t{4} << 20;

struct ProductWithEpilogue {
  BiasedProduct biased;
  std::optional<ValueId> summand;
  std::string_view activation = library_activations[0];
};

/// The activation that the library knows, of the node's first argument; nothing where it is none.
std::optional<std::string_view> activation_of(const Node& node) {
  if (call_named(node, "aten::relu", 1) != nullptr) return "relu";
  const bool gelu = call_named(node, "aten::gelu", 2) != nullptr && node.args[1] == Arg{std::string("tanh")};
  return gelu ? std::optional<std::string_view>("gelu_tanh") : std::nullopt;
}

class EpilogueMatcher {
 public:
  explicit EpilogueMatcher(const Graph& graph)
      : graph_(graph), chains_(graph, [&graph](const Node& node) { return is_served(graph, node); }) {}

  /// The longest chain that ends at the node and is more than a product with a bias.
  [[nodiscard]] std::optional<ProductWithEpilogue> at(const Node& node) const {
    const auto activation = activation_of(node);
    if (!activation || !chains_.is_own(node)) return summed(node);
    const Node* behind = chains_.read_once(node.args[0]);
    if (behind == nullptr) return std::nullopt;
    if (const auto sum = summed(*behind)) return ProductWithEpilogue{sum->biased, sum->summand, *activation};
    const auto biased = chains_.at(*behind);
    return biased ? std::optional(ProductWithEpilogue{*biased, {}, *activation}) : std::nullopt;
  }

 private:
  /// product + bias + summand
  [[nodiscard]] std::optional<ProductWithEpilogue> summed(const Node& node) const {
    const auto summands = summands_of(node);
    if (!summands || !chains_.is_own(node) || chains_.at(node)) return std::nullopt;
    const Type& sum = graph_.type(node.results[0]);
    if (!sum.is_static() || sum.numel() * bytes_of(sum.dtype) < fewest_summed_bytes) return std::nullopt;
    for (const size_t side : {0, 1}) {
      const Node* behind = chains_.read_once((*summands)[side]);
      const ValueId* other = (*summands)[1 - side].value();
      if (behind == nullptr || other == nullptr || !is_like(graph_.type(*other), sum)) continue;
      const auto biased = chains_.at(*behind);
      const bool one_dtype = biased && graph_.type(biased->product->results[0]).dtype == sum.dtype;
      if (one_dtype) return ProductWithEpilogue{*biased, *other};
    }
    return std::nullopt;
  }

  [[nodiscard]] static bool is_like(const Type& other, const Type& sum) {
    return other.dtype == sum.dtype && other.sizes == sum.sizes && other.is_contiguous() && other.device == sum.device;
  }

  [[nodiscard]] static bool is_served(const Graph& graph, const Node& node) {
    const Product product = *product_of(node);
    return has_library_product(graph.type(product.left), graph.type(product.right), graph.type(node.results[0]));
  }

  const Graph& graph_;
  ProductChains chains_;
};

ValueId as_call(Rewriter& rewrite, const Node& end, const ProductWithEpilogue& found) {
  const Graph& old = rewrite.old();
  const Node& node = *found.biased.product;
  const Product product = *product_of(node);
  const Type type = old.type(node.results[0]);
  const Type wanted = old.type(end.results[0]);
  LibraryProduct given{.left = rewrite.get(product.left),
                       .right = rewrite.get(product.right),
                       .bias = std::nullopt,
                       .summand = std::nullopt,
                       .activation = found.activation};
  if (found.biased.bias) given.bias = rewrite.get(*found.biased.bias);
  if (found.summand) given.summand = rewrite.add(View{0}, {{rewrite.get(*found.summand)}}, type, node.scope);
  auto [call, args] = call_of(given);
  const ValueId result = rewrite.add(std::move(call), std::move(args), type, node.scope);
  return wanted.sizes == type.sizes ? result : rewrite.add(View{0}, {{result}}, wanted, end.scope);
}

}  // namespace

PassResult product_epilogues(Graph& graph, const PassContext& context) {
  if (!context.fast_on_cuda()) return {};
  const EpilogueMatcher matcher(graph);
  return rewrite_first_results(graph, [&](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    const auto found = matcher.at(node);
    return found ? std::optional(as_call(rewrite, node, *found)) : std::nullopt;
  });
}

}  // namespace sinter::passes
