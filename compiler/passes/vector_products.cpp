#include "compiler/passes/vector_products.h"

#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/op_types.h"
#include "compiler/passes/batched_product.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// Matrices and what their elements are multiplied with, all of the old graph.
struct VectorProduct {
  ValueId matrices;  ///< [batch, rows, columns]
  ValueId vectors;
  Type beside;   ///< the vectors, seen so that they broadcast to the matrices
  uint32_t dim;  ///< of the matrices, that sums are over
};

std::optional<VectorProduct> vector_product(const Graph& graph, const Node& node) {
  const auto product = batched_product(graph, node);
  if (!product) return std::nullopt;
  const Type& left = graph.type(product->left);
  const Type& right = graph.type(product->right);
  if (!is_float(left.dtype) || left.numel() == 0 || right.numel() == 0) return std::nullopt;
  const auto turned = [](Type type) {
    std::swap(type.sizes[1], type.sizes[2]);
    std::swap(type.strides[1], type.strides[2]);
    return type;
  };
  if (right.sizes[2] == Dim(1)) return VectorProduct{product->left, product->right, turned(right), 2};
  if (left.sizes[1] == Dim(1)) return VectorProduct{product->right, product->left, turned(left), 1};
  return std::nullopt;
}

ValueId as_sum(Rewriter& rewrite, const Node& node, const VectorProduct& product) {
  const Type& result = rewrite.old().type(node.results[0]);
  const DType dtype = computation_dtype(result.dtype);
  const auto add = [&](Payload payload, std::vector<Arg> args, Type type) {
    return rewrite.add(std::move(payload), std::move(args), std::move(type), node.scope);
  };
  const auto wide = [&](ValueId value, const Type& seen) {
    Type type = dense_like(seen, seen.sizes);
    type.dtype = dtype;
    return seen.dtype == dtype ? value : add(Primitive{op_named("cast")}, {{value}}, std::move(type));
  };
  const Type& matrices = rewrite.old().type(product.matrices);
  const ValueId elements = wide(rewrite.get(product.matrices), matrices);
  const ValueId factors = wide(add(View{0}, {{rewrite.get(product.vectors)}}, product.beside), product.beside);
  Type all = dense_like(matrices, matrices.sizes);
  all.dtype = dtype;
  const ValueId products = add(Primitive{op_named("mul")}, {{elements}, {factors}}, std::move(all));
  std::vector<Dim> sizes = matrices.sizes;
  sizes[product.dim] = 1;
  Type sums = contiguous(dtype, sizes, result.device);
  const ValueId sum = add(Reduce{reduction_named("sum"), {product.dim}}, {{products}}, std::move(sums));
  return dtype == result.dtype ? sum : add(Primitive{op_named("cast")}, {{sum}}, result);
}

}  // namespace

PassResult vector_products(Graph& graph, const PassContext& context) {
  if (!context.fast_on_cuda()) return {};
  return rewrite_first_results(graph, [](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    const auto product = vector_product(rewrite.old(), node);
    return product ? std::optional(as_sum(rewrite, node, *product)) : std::nullopt;
  });
}

}  // namespace sinter::passes
