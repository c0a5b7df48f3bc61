#include "compiler/passes/onednn_products.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/passes/batched_product.h"
#include "compiler/passes/frozen.h"
#include "compiler/passes/onednn_calls.h"
#include "compiler/passes/product.h"
#include "compiler/passes/product_chain.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// Multiplications under which a call of oneDNN's, some 10 us of looking its kernel up, takes longer than the BLAS.
constexpr int64_t fewest_multiplications = int64_t{1} << 18;
/// The same for each matrix of a batch, whose results are then written once more; that takes as long as a few terms.
constexpr int64_t most_matrices = 32;
constexpr int64_t fewest_terms = 256;
constexpr int64_t fewest_of_a_matrix = int64_t{1} << 22;
/// Rows that a matrix of unknown length is taken to have.
constexpr int64_t likely_rows = 64;

/// A product, and what is done to each number of it.
struct LinearChain {
  BiasedProduct biased;
  std::optional<Activation> activation;
};

class LinearMatcher {
 public:
  LinearMatcher(const Graph& graph, const PassContext& context)
      : graph_(graph),
        chains_(graph, [&graph](const Node& node) { return is_served(graph, node); }),
        packs_(context.freeze && !context.generic_sizes),
        frozen_(frozen_nodes(graph, context.freeze)) {}

  /// The longest chain that ends at the node.
  [[nodiscard]] std::optional<LinearChain> chain_at(const Node& node) const {
    if (auto activation = onednn_activation(node); activation && chains_.is_own(node)) {
      const Node* behind = chains_.read_once(node.args[0]);
      const auto biased = behind == nullptr ? std::nullopt : chains_.at(*behind);
      if (biased) return LinearChain{*biased, std::move(activation)};
    }
    const auto biased = chains_.at(node);
    return biased ? std::optional(LinearChain{*biased, std::nullopt}) : std::nullopt;
  }

  /// A product of few large matrices, for which calls and a pass over the results take less than the BLAS.
  [[nodiscard]] std::optional<BatchedProduct> large_batch(const Node& node) const {
    const auto batch = batched_product(graph_, node);
    if (!batch || !chains_.is_own(node)) return std::nullopt;
    const Type& left = graph_.type(batch->left);
    const Type& right = graph_.type(batch->right);
    const auto is_dense_matrix = [](const Type& type) {
      return type.strides[1] == type.sizes[2] || type.strides[2] == type.sizes[1];
    };
    const bool floats = left.dtype == DType::f32 && right.dtype == DType::f32;
    if (!floats || !is_dense_matrix(left) || !is_dense_matrix(right)) return std::nullopt;
    const auto sizes = left.static_sizes();
    const int64_t multiplications = sizes[1] * sizes[2] * right.sizes[2].value();
    const bool pays = sizes[0] <= most_matrices && sizes[2] >= fewest_terms && multiplications >= fewest_of_a_matrix;
    return pays ? batch : std::nullopt;
  }

  [[nodiscard]] bool is_packed(ValueId weight) const { return packs_ && frozen_[graph_.value(weight).producer.index]; }

 private:
  /// True for a product that is large enough, of matrices that oneDNN reads where they lie.
  [[nodiscard]] static bool is_served(const Graph& graph, const Node& node) {
    const Product product = *product_of(node);
    const Type& left = graph.type(product.left);
    const Type& right = graph.type(product.right);
    if (left.dtype != DType::f32 || right.dtype != DType::f32 || !right.is_static() || !right.is_dense()) return false;
    const int64_t rows = left.sizes[0].is_static() ? left.sizes[0].value() : likely_rows;
    return rows > 0 && rows * right.numel() >= fewest_multiplications;
  }

  const Graph& graph_;
  ProductChains chains_;
  bool packs_;
  std::vector<bool> frozen_;
};

/// What a call is given, of the new graph.
struct LinearOperands {
  ValueId left;
  ValueId right;
  std::optional<ValueId> bias;
  Activation activation{"none", {}};
  bool packed = false;
};

/// `mkldnn::_linear_pointwise(left, weight, bias, activation, numbers, algorithm)`, whose weight is the right matrix
/// turned: a row for each column of the result.
ValueId add_linear(Rewriter& rewrite, const LinearOperands& given, Type result, ScopeId scope) {
  Type turned = rewrite.next().type(given.right);
  std::swap(turned.sizes[0], turned.sizes[1]);
  std::swap(turned.strides[0], turned.strides[1]);
  ValueId weight = rewrite.add(View{0}, {{given.right}}, turned, scope);
  if (given.packed) {
    const Dim rows = rewrite.next().type(given.left).sizes[0];
    weight = rewrite.add(onednn_call(onednn_packed_linear), {{weight}, rows.is_static() ? Arg{rows.value()} : Arg{}},
                         packed_weight(turned), scope);
  }
  return rewrite.add(onednn_call(onednn_linear),
                     {{given.left},
                      {weight},
                      given.bias ? Arg{*given.bias} : Arg{},
                      {given.activation.name},
                      {ArgList{}},
                      {given.activation.algorithm}},
                     std::move(result), scope);
}

ValueId as_call(Rewriter& rewrite, const LinearMatcher& matcher, const Node& end, const LinearChain& chain) {
  const Graph& old = rewrite.old();
  const Product product = *product_of(*chain.biased.product);
  LinearOperands given{.left = rewrite.get(product.left),
                       .right = rewrite.get(product.right),
                       .bias = std::nullopt,
                       .packed = matcher.is_packed(product.right)};
  if (chain.biased.bias) given.bias = rewrite.get(*chain.biased.bias);
  if (chain.activation) given.activation = *chain.activation;
  const Type& type = old.type(chain.biased.product->results[0]);
  const ValueId result = add_linear(rewrite, given, type, chain.biased.product->scope);
  const Type& wanted = old.type(end.results[0]);
  return wanted.sizes == type.sizes ? result : rewrite.add(View{0}, {{result}}, wanted, end.scope);
}

/// One of the matrices of a batch.
ValueId matrix_of(Rewriter& rewrite, ValueId batch, int64_t index, ScopeId scope) {
  const Type& all = rewrite.next().type(batch);
  const int64_t offset = index * all.strides[0].value();
  Type type = all;
  type.sizes.erase(type.sizes.begin());
  type.strides.erase(type.strides.begin());
  return rewrite.add(View{offset}, {{batch}}, std::move(type), scope);
}

/// A product for each matrix of the batch, side by side.
ValueId as_calls(Rewriter& rewrite, const Node& node, const BatchedProduct& product, bool packed) {
  const Type result = rewrite.old().type(node.results[0]);
  Type matrix = contiguous(result.dtype, {result.sizes[1], result.sizes[2]}, result.device);
  Type part = contiguous(result.dtype, {Dim(1), result.sizes[1], result.sizes[2]}, result.device);
  ArgList parts;
  for (int64_t i = 0; i < result.sizes[0].value(); ++i) {
    const ValueId left = matrix_of(rewrite, rewrite.get(product.left), i, node.scope);
    const ValueId right = matrix_of(rewrite, rewrite.get(product.right), i, node.scope);
    const ValueId call =
        add_linear(rewrite, {.left = left, .right = right, .bias = std::nullopt, .packed = packed}, matrix, node.scope);
    parts.push_back({rewrite.add(View{0}, {{call}}, part, node.scope)});
  }
  Call join;
  join.op = "aten::cat";
  return rewrite.add(std::move(join), {{std::move(parts)}, {int64_t{0}}}, result, node.scope);
}

}  // namespace

PassResult onednn_products(Graph& graph, const PassContext& context) {
  if (!context.device.onednn_products || context.numerics != Numerics::fast) return {};
  const LinearMatcher matcher(graph, context);
  return rewrite_first_results(graph, [&](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    if (const auto batch = matcher.large_batch(node)) {
      return as_calls(rewrite, node, *batch, matcher.is_packed(batch->right));
    }
    const auto chain = matcher.chain_at(node);
    return chain ? std::optional(as_call(rewrite, matcher, node, *chain)) : std::nullopt;
  });
}

}  // namespace sinter::passes
