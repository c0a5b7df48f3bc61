#include <algorithm>
#include <array>

#include "compiler/ir/op_types.h"
#include "compiler/passes/decompose_rules.h"
#include "compiler/passes/primitive_builder.h"
#include "compiler/passes/product.h"

namespace sinter::passes {
namespace {

using namespace ir;

// A library's kernel for a product of matrices takes 3.4 us or more on an H100 under a CUDA graph, 5 to 9 where halves
// do not lie so that 16 bytes can be loaded at once. Up to so many products of elements a generated kernel takes less,
// and does what stands around it, too.
constexpr int64_t few_elements = int64_t{1} << 19;
constexpr int64_t few_misaligned_elements = int64_t{1} << 21;
constexpr int64_t halves_loaded_at_once = 8;

/// True where the library loads a matrix of halves a few bytes at a time.
bool is_misaligned(const Type& matrix) {
  if (!is_half(matrix.dtype)) return false;
  const int64_t apart = matrix.strides[matrix.strides[1] == Dim(1) ? 0 : 1].value();
  return apart % halves_loaded_at_once != 0;
}

/// True for a product of two matrices of one float dtype and static sizes that a generated kernel computes in less time
/// than the library.
bool is_small(const Type& left, const Type& right, const Type& result) {
  const std::array types{&left, &right, &result};
  const bool fits = std::ranges::all_of(types, [&](const Type* type) {
    return type->is_static() && is_float(type->dtype) && type->dtype == result.dtype && type->numel() > 0;
  });
  if (!fits) return false;
  const int64_t elements = result.numel() * left.static_sizes()[1];
  const bool misaligned = std::ranges::any_of(types, [](const Type* type) { return is_misaligned(*type); });
  return elements <= (misaligned ? few_misaligned_elements : few_elements);
}

/// A small product as sums over the last of the dims rows, columns and inner.
std::optional<Results> small_product(Graph& graph, const CallSite& site) {
  const auto product = product_of(site.op, site.args);
  if (!product || !site.context.fast_on_cuda()) return std::nullopt;
  const Type left = graph.type(product->left), right = graph.type(product->right);
  if (!is_small(left, right, site.type())) return std::nullopt;
  PrimitiveBuilder build(graph, site, computation_dtype(site.type().dtype));
  const Arg rows =
      build.view({product->left}, {left.sizes[0], 1, left.sizes[1]}, {left.strides[0], left.sizes[1], left.strides[1]});
  const Arg columns = build.view({product->right}, {1, right.sizes[1], right.sizes[0]},
                                 {right.sizes[0], right.strides[1], right.strides[0]});
  const Arg sums = build.reduce("sum", build.op("mul", {build.wide(rows), build.wide(columns)}), {2});
  Arg value = build.reshape(sums, site.type().sizes);
  if (product->bias) value = build.op("add", {value, build.wide({*product->bias})});
  return only_first(site, build.result(value, site.type()));
}

constexpr std::array small_product_rows = {RuleRow{"aten::mm", small_product}, RuleRow{"aten::addmm", small_product}};

}  // namespace

std::span<const RuleRow> small_product_rules() { return small_product_rows; }

}  // namespace sinter::passes
