#include "compiler/passes/fold_batches.h"

#include <array>
#include <optional>
#include <utility>

#include "compiler/passes/batched_product.h"
#include "compiler/passes/joined_dims.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// The matrices of a batch as one, their rows behind each other; nothing where they do not lie so.
std::optional<Type> rows_of_all(const Type& matrices) {
  constexpr std::array<size_t, 2> dims = {0, 1};
  const auto rows = joined_dims(matrices, dims);
  if (!rows) return std::nullopt;
  Type all = matrices;
  all.sizes = {rows->size, matrices.sizes[2]};
  all.strides = {rows->stride, matrices.strides[2]};
  return all;
}

/// The matrix that all of a batch are.
std::optional<Type> repeated(const Type& matrices) {
  if (!(matrices.strides[0] == Dim(0))) return std::nullopt;
  Type one = matrices;
  one.sizes.erase(one.sizes.begin());
  one.strides.erase(one.strides.begin());
  return one;
}

std::optional<ValueId> folded(Rewriter& rewrite, const Node& node) {
  const Graph& old = rewrite.old();
  const auto batch = batched_product(old, node);
  if (!batch || node.as<Call>()->impure) return std::nullopt;
  const Type result = old.type(batch->result);
  if (result.numel() == 0 || result.sizes[0] == Dim(1)) return std::nullopt;
  auto rows = rows_of_all(old.type(batch->left));
  auto matrix = repeated(old.type(batch->right));
  if (!rows || !matrix) return std::nullopt;
  const auto look = [&](ValueId value, Type type) {
    return rewrite.add(View{0}, {{rewrite.get(value)}}, std::move(type), node.scope);
  };
  Type all = contiguous(result.dtype, {rows->sizes[0], matrix->sizes[1]}, result.device);
  const ValueId left = look(batch->left, *std::move(rows)), right = look(batch->right, *std::move(matrix));
  const ValueId product =
      rewrite.add(Call{"aten::mm", {}, {}, false, false}, {{left}, {right}}, std::move(all), node.scope);
  return rewrite.add(View{0}, {{product}}, result, node.scope);
}

}  // namespace

PassResult fold_batches(Graph& graph, const PassContext& context) {
  if (context.numerics != Numerics::fast) return {};
  return rewrite_first_results(graph, folded);
}

}  // namespace sinter::passes
