#include "compiler/passes/expand_pool_gradients.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/passes/aten.h"
#include "compiler/passes/pointwise.h"
#include "compiler/passes/rewriter.h"
#include "compiler/passes/window_call.h"

namespace sinter::passes {
namespace {

using namespace ir;

constexpr int64_t most_taps = 16;  ///< elements of a window, each of which a thread reads at once
constexpr size_t image_dims = 4;

/// A pool over an image, by the value of its indices.
struct Pool {
  WindowCall call;
  const Node* node = nullptr;
  size_t lanes = 0;        ///< the dim of neighbours in memory
  uint32_t gradients = 0;  ///< calls that read the indices

  [[nodiscard]] const WindowAxis& rows() const { return call.axes[0]; }
  [[nodiscard]] const WindowAxis& columns() const { return call.axes[1]; }
};
using Pools = std::unordered_map<ValueId, Pool>;

/// max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices)
constexpr size_t gradient_arguments = 8;
constexpr size_t gradient_indices = 7;
constexpr size_t pool_arguments = 6;

bool lies_apart(const WindowAxis& axis) {
  return axis.stride == axis.taps && axis.padding == 0 && axis.dilation == 1 && axis.outputs * axis.stride <= axis.size;
}

std::optional<Pool> pool_of(const Graph& graph, const Node& node, const PassContext& context) {
  if (call_named(node, "aten::max_pool2d_with_indices", pool_arguments) == nullptr) return std::nullopt;
  auto call = window_call(graph, node, context);
  if (!call || node.results.size() != 2 || call->taps() < 2 || call->taps() > most_taps) return std::nullopt;
  const auto is_view = [&](ValueId result) { return graph.value(result).alias.has_value(); };
  if (std::ranges::any_of(node.results, is_view) || !std::ranges::all_of(call->axes, lies_apart)) return std::nullopt;
  const Type& image = graph.type(call->input);
  const auto lanes = window_lanes(*call, image, graph.type(node.results[0]));
  if (!lanes || image.rank() != image_dims) return std::nullopt;
  return Pool{*std::move(call), &node, *lanes};
}

/// True where a type has its neighbours where the pool's images have them.
bool lies_like(const Pool& pool, const Type& type) {
  return type.is_dense() && (type.sizes[pool.lanes] == Dim(1) || type.strides[pool.lanes] == Dim(1));
}

/// The pool of which a node is the gradient.
Pool* pool_of_gradient(const Graph& graph, const Node& node, Pools& pools) {
  if (call_named(node, "aten::max_pool2d_with_indices_backward", gradient_arguments) == nullptr) return nullptr;
  const ValueId* indices = node.args[gradient_indices].value();
  const auto found = indices == nullptr ? pools.end() : pools.find(*indices);
  if (found == pools.end() || !is_kernel_operand(graph, node.args[0])) return nullptr;
  Pool& pool = found->second;
  for (size_t at = 1; at < pool_arguments; ++at) {
    if (!(node.args[at + 1] == pool.node->args[at])) return nullptr;
  }
  const Type& from = graph.type(*node.args[0].value());
  const Type& to = graph.type(node.results[0]);
  const Type& pooled = graph.type(pool.node->results[0]);
  const bool fits = from.sizes == pooled.sizes && from.dtype == pooled.dtype && to.dtype == pooled.dtype &&
                    to.sizes == graph.type(pool.call.input).sizes && is_kernel_result(graph, to);
  return fits && lies_like(pool, from) && lies_like(pool, to) ? &pool : nullptr;
}

/// Adds what stands for pools and their gradients.
class PoolExpansion {
 public:
  PoolExpansion(Rewriter& rewrite, const Pool& pool, const Node& node)
      : rewrite_(rewrite), pool_(pool), scope_(node.scope), pooled_(rewrite.old().type(pool.node->results[0])) {}

  /// The largest element of each window, and which of its elements it is. As ATen has it: of equal ones the first, of
  /// several NaN the last.
  void add_pool() {
    ValueId most = tap(0), which = add("cast", {{int64_t{0}}}, typed(DType::i32, pooled_));
    for (int64_t number = 1; number < pool_.call.taps(); ++number) {
      const ValueId next = tap(number);
      const Type truth = typed(DType::b8, pooled_);
      const ValueId more = add("gt", {{next}, {most}}, truth);
      const ValueId nan = add("ne", {{next}, {next}}, truth);
      const ValueId takes = add("bitwise_or", {{more}, {nan}}, truth);
      most = add("where", {{takes}, {next}, {most}}, typed(DType::f32, pooled_));
      which = add("where", {{takes}, {number}, {which}}, typed(DType::i32, pooled_));
    }
    rewrite_.set(pool_.node->results[0], add("cast", {{most}}, pooled_));
    rewrite_.set(pool_.node->results[1], add("cast", {{which}}, typed(DType::u8, pooled_)));
  }

  /// The gradient of the image, given that of the pooled one.
  ValueId gradient(ValueId from, ValueId which, const Type& image) {
    const Type inside = whole_windows(image);
    const Type split = by_window(inside);
    const ValueId number = add("cast", {{repeated(which, split)}}, typed(DType::i32, split));
    const ValueId takes = add("eq", {{number}, {tap_numbers(split)}}, typed(DType::b8, split));
    const ValueId taken = add("where", {{takes}, {repeated(from, split)}, {0.0}}, typed(image.dtype, split));
    return with_rest(rewrite_.add(View{0}, {{taken}}, Type(inside), scope_), image);
  }

 private:
  ValueId add(std::string_view op, std::vector<Arg> args, Type type) {
    return rewrite_.add(Primitive{op_named(op)}, std::move(args), std::move(type), scope_);
  }

  static Type typed(DType dtype, const Type& like) { return {dtype, like.sizes, like.strides, like.device}; }

  /// One element of each window, in f32.
  ValueId tap(int64_t number) {
    const ValueId image = rewrite_.get(pool_.call.input);
    Type seen = rewrite_.next().type(image);
    const int64_t row = number / pool_.columns().taps, column = number % pool_.columns().taps;
    const int64_t offset = row * seen.strides[2].constant() + column * seen.strides[3].constant();
    seen.sizes = pooled_.sizes;
    seen.strides[2] = seen.strides[2] * pool_.rows().stride;
    seen.strides[3] = seen.strides[3] * pool_.columns().stride;
    const ValueId view = rewrite_.add(View{offset}, {{image}}, std::move(seen), scope_);
    return add("cast", {{view}}, typed(DType::f32, pooled_));
  }

  /// The part of an image that windows cover, dense.
  [[nodiscard]] Type whole_windows(const Type& image) const {
    std::vector<Dim> sizes = image.sizes;
    sizes[2] = pool_.rows().outputs * pool_.rows().stride;
    sizes[3] = pool_.columns().outputs * pool_.columns().stride;
    return dense_like(image, std::move(sizes));
  }

  /// Images, channels, rows of windows, rows of one, columns of windows, columns of one.
  [[nodiscard]] Type by_window(const Type& inside) const {
    const int64_t high = pool_.rows().taps, wide = pool_.columns().taps;
    const auto& [n, c, h, w] = std::tie(inside.strides[0], inside.strides[1], inside.strides[2], inside.strides[3]);
    return {inside.dtype,
            {inside.sizes[0], inside.sizes[1], pool_.rows().outputs, high, pool_.columns().outputs, wide},
            {n, c, h * high, h, w * wide, w},
            inside.device};
  }

  /// What a window has, for each of its elements.
  ValueId repeated(ValueId value, const Type& split) {
    const Type& of = rewrite_.next().type(value);
    Type seen{of.dtype, split.sizes, {of.strides[0], of.strides[1], of.strides[2], 0, of.strides[3], 0}, of.device};
    return rewrite_.add(View{0}, {{value}}, std::move(seen), scope_);
  }

  /// The number of each element in its window.
  ValueId tap_numbers(const Type& split) {
    const auto along = [&](uint32_t dim, int64_t count) {
      std::vector<Dim> sizes(split.rank(), Dim(1));
      sizes[dim] = count;
      return rewrite_.add(Position{dim}, {}, contiguous(DType::i32, sizes, split.device), scope_);
    };
    const int64_t high = pool_.rows().taps, wide = pool_.columns().taps;
    const ValueId row = along(3, high), column = along(5, wide);
    const Type row_type = rewrite_.next().type(row);
    std::vector<Dim> both(split.rank(), Dim(1));
    both[3] = high, both[5] = wide;
    const ValueId before = add("mul", {{row}, {wide}}, row_type);
    return add("add", {{before}, {column}}, contiguous(DType::i32, both, split.device));
  }

  /// Rows and columns behind the last windows have no gradient.
  ValueId with_rest(ValueId inside, const Type& image) {
    for (const size_t dim : {size_t{3}, size_t{2}}) {
      std::vector<Dim> sizes = rewrite_.next().type(inside).sizes;
      const int64_t rest = image.sizes[dim].constant() - sizes[dim].constant();
      if (rest == 0) continue;
      sizes[dim] = rest;
      const ValueId zeros = add("cast", {{0.0}}, dense_like(image, sizes));
      sizes[dim] = image.sizes[dim];
      inside = rewrite_.add(Join{static_cast<uint32_t>(dim)}, {{inside}, {zeros}}, dense_like(image, sizes), scope_);
    }
    return inside;
  }

  Rewriter& rewrite_;
  const Pool& pool_;
  ScopeId scope_;
  Type pooled_;
};

/// Pools whose indices gradients alone read.
Pools find_pools(const Graph& graph, const PassContext& context) {
  Pools pools;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (auto pool = pool_of(graph, node, context)) pools.emplace(node.results[1], *std::move(pool));
    if (Pool* pool = pool_of_gradient(graph, node, pools)) ++pool->gradients;
  }
  const std::vector<uint32_t> uses = use_counts(graph);
  std::erase_if(pools, [&](const auto& row) {
    return row.second.gradients == 0 || row.second.gradients != uses[row.first.index];
  });
  return pools;
}

}  // namespace

PassResult expand_pool_gradients(Graph& graph, const PassContext& context) {
  Pools pools = find_pools(graph, context);
  if (pools.empty()) return {};
  PassResult result;
  Rewriter rewrite(graph);
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const auto pool = node.results.size() == 2 ? pools.find(node.results[1]) : pools.end();
    if (pool != pools.end()) {
      PoolExpansion(rewrite, pool->second, node).add_pool();
      ++result.changes;
    } else if (const Pool* of = pool_of_gradient(graph, node, pools)) {
      const ValueId from = rewrite.get(*node.args[0].value()),
                    which = rewrite.get(*node.args[gradient_indices].value());
      rewrite.set(node.results[0],
                  PoolExpansion(rewrite, *of, node).gradient(from, which, graph.type(node.results[0])));
      ++result.changes;
    } else {
      rewrite.copy(id);
    }
  }
  Graph next = rewrite.finish();
  graph = std::move(next);
  return result;
}

}  // namespace sinter::passes
