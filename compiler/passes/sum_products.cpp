#include "compiler/passes/sum_products.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/op_types.h"
#include "compiler/passes/aligned_halves.h"
#include "compiler/passes/batched_product.h"
#include "compiler/passes/product.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

// Measured on an H100 under a CUDA graph.
constexpr double library_start = 3.4;       ///< microseconds of the library's quickest kernel
constexpr double kernel_start = 1.9;        ///< and of a generated one, which is launched while that before it runs
constexpr double memory_speed = 2.5e6;      ///< bytes a microsecond
constexpr double misaligned_speed = 0.4e6;  ///< where the library loads halves one or two at a time
constexpr double element_speed = 2e6;       ///< products of elements a microsecond, in a generated kernel
/// Bytes above which memory bounds both, and products that share an operand are better merged.
constexpr double most_aligned_bytes = 1 << 20;
/// Products of elements above which a kernel takes longer than estimated, which may compute the operands, too.
constexpr double most_products = 5 << 20;
/// On two cores of an AMD processor.
constexpr int64_t most_vectors_on_cpu = 4;
constexpr int64_t most_products_on_cpu = int64_t{1} << 19;
constexpr double gain = 1.25;  ///< below it the library's kernel stays: these are estimates
constexpr uint32_t inner_dim = 3;

/// A product of matrices, its operands of the old graph seen so that they broadcast to [batch, rows, columns, inner].
struct Factors {
  ValueId left, right;
  std::optional<ValueId> bias;
  Type rows, columns;
};

/// An operand with `apart` and `inner` among its dims as [batch, apart, 1, inner] or [batch, 1, apart, inner].
Type seen(const Type& operand, size_t apart, size_t inner, bool as_rows) {
  const bool batched = operand.rank() == 3;
  const Dim one = 1, size = operand.sizes[apart], stride = operand.strides[apart];
  Type type = operand;
  type.sizes = {batched ? operand.sizes[0] : one, as_rows ? size : one, as_rows ? one : size, operand.sizes[inner]};
  type.strides = {batched ? operand.strides[0] : one, as_rows ? stride : one, as_rows ? one : stride,
                  operand.strides[inner]};
  return type;
}

/// The node as a product of floats of one dtype and static sizes, none of them 0; nothing where its result is the
/// memory that a later call writes to.
std::optional<Factors> factors_of(const Graph& graph, const Node& node) {
  const auto* call = node.as<Call>();
  if (call == nullptr || call->impure) return std::nullopt;
  Factors factors;
  if (const auto product = product_of(node)) {
    factors = {product->left, product->right, product->bias, {}, {}};
  } else if (const auto batched = batched_product(graph, node)) {
    factors = {batched->left, batched->right, std::nullopt, {}, {}};
  } else {
    return std::nullopt;
  }
  const Type& left = graph.type(factors.left);
  const Type& right = graph.type(factors.right);
  const Type& result = graph.type(node.results[0]);
  const std::array types{&left, &right, &result};
  const bool fits = std::ranges::all_of(types, [&](const Type* type) {
    return type->is_static() && is_float(type->dtype) && type->dtype == result.dtype && type->numel() > 0;
  });
  if (!fits) return std::nullopt;
  factors.rows = seen(left, left.rank() - 2, left.rank() - 1, true);
  factors.columns = seen(right, right.rank() - 1, right.rank() - 2, false);
  return factors;
}

/// True where the library loads matrices of halves a few bytes at a time.
bool is_misaligned(const Type& matrices) {
  if (!is_half(matrices.dtype)) return false;
  const size_t rows = matrices.rank() - 2, columns = matrices.rank() - 1;
  const bool row_major = matrices.strides[columns] == Dim(1);
  return matrices.strides[row_major ? rows : columns].constant() % aligned_halves != 0;
}

/// Bytes of what differs: matrices that a batch shares are read once.
double bytes_of_elements(const Type& type) {
  int64_t elements = 1;
  for (size_t dim = 0; dim < type.rank(); ++dim) {
    if (type.strides[dim] != Dim(0)) elements *= type.sizes[dim].constant();
  }
  return static_cast<double>(elements * bytes_of(type.dtype));
}

/// True where a generated kernel takes clearly less time than the library's.
bool is_quicker_generated(const Type& left, const Type& right, const Type& result) {
  const bool misaligned = is_misaligned(left) || is_misaligned(right) || is_misaligned(result);
  const double bytes = bytes_of_elements(left) + bytes_of_elements(right) + bytes_of_elements(result);
  const auto products = static_cast<double>(result.numel() * left.sizes.back().constant());
  if (products > most_products || (!misaligned && bytes > most_aligned_bytes)) return false;
  const double library = library_start + bytes / (misaligned ? misaligned_speed : memory_speed);
  const double generated = kernel_start + std::max(bytes / memory_speed, products / element_speed);
  return generated * gain < library;
}

/// Rows or columns of a result's matrices, whichever are fewer.
int64_t fewest_vectors(const Type& result) {
  return std::min(result.sizes[result.rank() - 2].constant(), result.sizes[result.rank() - 1].constant());
}

/// Matrices with one vector each.
bool is_of_vectors(const Type& left, const Type& result) { return left.rank() == 3 && fewest_vectors(result) == 1; }

/// On the CPU a call of the library takes ten microseconds to begin, and what a vector multiplies is read once either
/// way; for each further vector a kernel reads it again.
bool is_quicker_generated_on_cpu(const Type& left, const Type& result) {
  if (result.dtype != DType::f32) return false;
  const int64_t vectors = fewest_vectors(result);
  if (vectors == 1) return true;
  const int64_t products = result.numel() * left.sizes.back().constant();
  return left.rank() == 2 && vectors <= most_vectors_on_cpu && products <= most_products_on_cpu;
}

ValueId as_sum(Rewriter& rewrite, const Node& node, const Factors& factors) {
  const Type& result = rewrite.old().type(node.results[0]);
  const DType compute = computation_dtype(result.dtype);
  const auto add = [&](Payload payload, std::vector<Arg> args, Type type) {
    type.dtype = compute;
    return rewrite.add(std::move(payload), std::move(args), std::move(type), node.scope);
  };
  const auto wide = [&](ValueId value, const Type& type) {
    const ValueId view = rewrite.add(View{0}, {{rewrite.get(value)}}, type, node.scope);
    return type.dtype == compute ? view : add(Primitive{op_named("cast")}, {{view}}, dense_like(type, type.sizes));
  };
  const auto sizes = [&](const Dim& inner) {
    return std::vector<Dim>{factors.rows.sizes[0], factors.rows.sizes[1], factors.columns.sizes[2], inner};
  };
  const ValueId rows = wide(factors.left, factors.rows), columns = wide(factors.right, factors.columns);
  // In the order in which the larger operand lies, so that its elements need no other layout should they be stored.
  const bool as_rows = factors.rows.numel() >= factors.columns.numel();
  const Type all = dense_like(as_rows ? factors.rows : factors.columns, sizes(factors.rows.sizes[inner_dim]));
  const ValueId products = add(Primitive{op_named("mul")}, {{rows}, {columns}}, all);
  const Type kept = contiguous(compute, sizes(1), result.device);
  const ValueId sums = add(Reduce{reduction_named("sum"), {inner_dim}}, {{products}}, kept);
  const Type in_place = contiguous(compute, result.sizes, result.device);
  const ValueId sum = add(View{0}, {{sums}}, in_place);
  if (!factors.bias) return rewrite.add(Primitive{op_named("cast")}, {{sum}}, result, node.scope);
  const Type& bias = rewrite.old().type(*factors.bias);
  const ValueId shifted = add(Primitive{op_named("add")}, {{sum}, {wide(*factors.bias, bias)}}, in_place);
  return rewrite.add(Primitive{op_named("cast")}, {{shifted}}, result, node.scope);
}

}  // namespace

PassResult sum_products(Graph& graph, const PassContext& context) {
  const bool on_cpu = context.fast_on_cpu();
  if (!on_cpu && !context.fast_on_cuda()) return {};
  return rewrite_first_results(graph, [on_cpu](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    const auto factors = factors_of(rewrite.old(), node);
    if (!factors) return std::nullopt;
    const Type& left = rewrite.old().type(factors->left);
    const Type& right = rewrite.old().type(factors->right);
    const Type& result = rewrite.old().type(node.results[0]);
    const bool sums = on_cpu ? is_quicker_generated_on_cpu(left, result)
                             : is_of_vectors(left, result) || is_quicker_generated(left, right, result);
    return sums ? std::optional(as_sum(rewrite, node, *factors)) : std::nullopt;
  });
}

}  // namespace sinter::passes
