#include "compiler/passes/expand_pool_gradients.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/passes/aten.h"
#include "compiler/passes/pointwise.h"
#include "compiler/passes/rewriter.h"
#include "compiler/passes/window_call.h"
#include "compiler/passes/zero_padding.h"
#include "compiler/support/ceil_div.h"

namespace sinter::passes {
namespace {

using namespace ir;

constexpr int64_t most_taps = 16;    ///< elements of a window, each of which a thread reads at once
constexpr int64_t most_windows = 9;  ///< that an element may lie in, each of which a thread asks what it has chosen
constexpr size_t image_dims = 4;
constexpr std::array<uint32_t, 2> axis_dims = {2, 3};   ///< of an image
constexpr std::array<uint32_t, 2> block_dims = {2, 4};  ///< of an image in blocks

/// An image in blocks of as many elements as windows are apart, along one axis. Elements of block `a` may lie in the
/// windows `a + first` to `a + last`.
struct Blocks {
  int64_t size = 1;
  int64_t count = 1;
  int64_t first = 0, last = 0;

  [[nodiscard]] int64_t windows() const { return last - first + 1; }
};

Blocks blocks_of(const WindowAxis& axis) {
  return {axis.stride, ceil_div(axis.size, axis.stride), -((axis.taps - 1 - axis.padding) / axis.stride),
          (axis.stride - 1 + axis.padding) / axis.stride};
}

/// A pool over an image, by the value of its indices.
struct Pool {
  WindowCall call;
  const Node* node = nullptr;
  size_t lanes = 0;        ///< the dim of neighbours in memory
  bool is_apart = false;   ///< no element lies in two windows, none in the padding
  uint32_t gradients = 0;  ///< calls that read the indices
  bool is_coded = false;   ///< a byte for each window stands in place of the index
  std::array<Blocks, 2> blocks = {};

  [[nodiscard]] const WindowAxis& rows() const { return call.axes[0]; }
  [[nodiscard]] const WindowAxis& columns() const { return call.axes[1]; }
};
using Pools = std::unordered_map<ValueId, Pool>;

/// max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices)
constexpr size_t gradient_arguments = 8;
constexpr size_t gradient_indices = 7;
constexpr size_t pool_arguments = 6;

bool lies_apart(const WindowAxis& axis) {
  return axis.stride >= axis.taps && axis.padding == 0 && axis.covered() <= axis.size;
}

std::optional<Pool> pool_of(const Graph& graph, const Node& node, const PassContext& context) {
  if (call_named(node, "aten::max_pool2d_with_indices", pool_arguments) == nullptr) return std::nullopt;
  auto call = window_call(graph, node, context);
  if (!call || node.results.size() != 2 || call->taps() < 2 || call->taps() > most_taps) return std::nullopt;
  const auto is_view = [&](ValueId result) { return graph.value(result).alias.has_value(); };
  const auto is_plain = [](const WindowAxis& axis) { return axis.dilation == 1 && axis.padding < axis.taps; };
  if (std::ranges::any_of(node.results, is_view) || !std::ranges::all_of(call->axes, is_plain)) return std::nullopt;
  const Type& image = graph.type(call->input);
  const auto lanes = window_lanes(*call, image, graph.type(node.results[0]));
  if (!lanes || image.rank() != image_dims || image.numel() > std::numeric_limits<int32_t>::max()) return std::nullopt;
  Pool pool{*std::move(call), &node, *lanes};
  pool.is_apart = std::ranges::all_of(pool.call.axes, lies_apart);
  pool.blocks = {blocks_of(pool.rows()), blocks_of(pool.columns())};
  const bool fits = pool.blocks[0].windows() * pool.blocks[1].windows() <= most_windows;
  return fits ? std::optional(std::move(pool)) : std::nullopt;
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
    ValueId most = tap(0, 0), which = add("cast", {{int64_t{0}}}, typed(DType::i32, pooled_));
    for (int64_t number = 1; number < pool_.call.taps(); ++number) {
      const int64_t row = number / pool_.columns().taps, column = number % pool_.columns().taps;
      const ValueId next = tap(row, column);
      const Type truth = typed(DType::b8, pooled_);
      const ValueId more = add("gt", {{next}, {most}}, truth);
      const ValueId nan = add("ne", {{next}, {next}}, truth);
      const ValueId takes = add("bitwise_or", {{more}, {nan}}, truth);
      most = add("where", {{takes}, {next}, {most}}, typed(DType::f32, pooled_));
      which = add("where", {{takes}, {row * pool_.columns().stride + column}, {which}}, typed(DType::i32, pooled_));
    }
    rewrite_.set(pool_.node->results[0], add("cast", {{most}}, pooled_));
    rewrite_.set(pool_.node->results[1], add("cast", {{which}}, typed(DType::u8, pooled_)));
  }

  /// The gradient of the image, given that of the pooled one: of all windows that have chosen an element, in their
  /// order.
  ValueId gradient(ValueId from, ValueId which, const Type& image) {
    const Type inside = whole_blocks(image);
    const Type split = by_block(inside);
    const bool sums = pool_.blocks[0].windows() * pool_.blocks[1].windows() > 1;
    const Type term = typed(sums ? DType::f32 : image.dtype, split);
    const ValueId numbers = pool_.is_coded ? numbers_in_blocks(split) : numbers_in_image(split);
    std::optional<ValueId> sum;
    for (int64_t row = pool_.blocks[0].first; row <= pool_.blocks[0].last; ++row) {
      for (int64_t column = pool_.blocks[1].first; column <= pool_.blocks[1].last; ++column) {
        const auto taken = taken_by(from, which, {row, column}, numbers, term);
        if (!taken) continue;
        sum = sum ? add("add", {{*sum}, {*taken}}, term) : *taken;
      }
    }
    if (!sum) sum = add("cast", {{0.0}}, term);
    const ValueId rounded = term.dtype == image.dtype ? *sum : add("cast", {{*sum}}, typed(image.dtype, split));
    const ValueId whole = rewrite_.add(View{0}, {{rounded}}, Type(inside), scope_);
    if (inside.sizes == image.sizes) return whole;
    Type part = inside;
    part.sizes = image.sizes;
    const ValueId seen = rewrite_.add(View{0}, {{whole}}, std::move(part), scope_);
    return add("cast", {{seen}}, dense_like(image, image.sizes));
  }

 private:
  ValueId add(std::string_view op, std::vector<Arg> args, Type type) {
    return rewrite_.add(Primitive{op_named(op)}, std::move(args), std::move(type), scope_);
  }

  static Type typed(DType dtype, const Type& like) { return {dtype, like.sizes, like.strides, like.device}; }

  /// One element of each window, in f32.
  ValueId tap(int64_t row, int64_t column) {
    const ValueId image = rewrite_.get(pool_.call.input);
    Type seen = rewrite_.next().type(image);
    const int64_t offset = row * seen.strides[2].constant() + column * seen.strides[3].constant();
    seen.sizes = pooled_.sizes;
    seen.strides[2] = seen.strides[2] * pool_.rows().stride;
    seen.strides[3] = seen.strides[3] * pool_.columns().stride;
    const ValueId view = rewrite_.add(View{offset}, {{image}}, std::move(seen), scope_);
    return add("cast", {{view}}, typed(DType::f32, pooled_));
  }

  /// The image up to the end of its last blocks, dense.
  [[nodiscard]] Type whole_blocks(const Type& image) const {
    std::vector<Dim> sizes = image.sizes;
    for (size_t i = 0; i < axis_dims.size(); ++i) sizes[axis_dims[i]] = pool_.blocks[i].count * pool_.blocks[i].size;
    return dense_like(image, std::move(sizes));
  }

  /// Images, channels, rows of blocks, rows of one, columns of blocks, columns of one.
  [[nodiscard]] Type by_block(const Type& inside) const {
    const int64_t high = pool_.blocks[0].size, wide = pool_.blocks[1].size;
    const auto& [n, c, h, w] = std::tie(inside.strides[0], inside.strides[1], inside.strides[2], inside.strides[3]);
    return {inside.dtype,
            {inside.sizes[0], inside.sizes[1], pool_.blocks[0].count, high, pool_.blocks[1].count, wide},
            {n, c, h * high, h, w * wide, w},
            inside.device};
  }

  /// Blocks of an axis for which there is a window that lies `apart` windows from theirs.
  [[nodiscard]] std::pair<int64_t, int64_t> blocks_with(size_t axis, int64_t apart) const {
    const Blocks& blocks = pool_.blocks[axis];
    return {std::max<int64_t>(0, -apart), std::min(blocks.count, pool_.call.axes[axis].outputs - apart)};
  }

  /// What elements have from windows that lie `apart` from their blocks, along both axes: theirs or zero. Nothing where
  /// there are no such windows.
  std::optional<ValueId> taken_by(ValueId from, ValueId which, std::array<int64_t, 2> apart, ValueId numbers,
                                  const Type& term) {
    std::array<std::pair<int64_t, int64_t>, 2> range;
    Type part = term;
    for (size_t i = 0; i < range.size(); ++i) {
      range[i] = blocks_with(i, apart[i]);
      if (range[i].second <= range[i].first) return std::nullopt;
      part.sizes[block_dims[i]] = range[i].second - range[i].first;
    }
    part = dense_like(term, part.sizes);
    const auto of_window = [&](ValueId value) {
      const Type& of = rewrite_.next().type(value);
      const int64_t offset = (range[0].first + apart[0]) * of.strides[2].constant() +
                             (range[1].first + apart[1]) * of.strides[3].constant();
      Type seen{of.dtype, part.sizes, {of.strides[0], of.strides[1], of.strides[2], 0, of.strides[3], 0}, of.device};
      return rewrite_.add(View{offset}, {{value}}, std::move(seen), scope_);
    };
    const ValueId chosen = add("cast", {{of_window(which)}}, typed(DType::i32, part));
    const ValueId takes = add("eq", {{chosen}, {of_blocks(numbers, range)}}, typed(DType::b8, part));
    ValueId taken = of_window(from);
    if (part.dtype != pooled_.dtype) taken = add("cast", {{taken}}, part);
    taken = add("where", {{takes}, {taken}, {0.0}}, part);
    for (size_t i = range.size(); i-- > 0;) {
      const int64_t after = pool_.blocks[i].count - range[i].second;
      taken = among_zeros(rewrite_, taken, block_dims[i], range[i].first, after, scope_);
    }
    return taken;
  }

  /// The numbers of elements of some blocks.
  ValueId of_blocks(ValueId numbers, std::span<const std::pair<int64_t, int64_t>> range) {
    Type seen = rewrite_.next().type(numbers);
    int64_t offset = 0;
    for (size_t i = 0; i < range.size(); ++i) {
      const uint32_t dim = block_dims[i];
      if (seen.sizes[dim] == Dim(1)) continue;
      offset += range[i].first * seen.strides[dim].constant();
      seen.sizes[dim] = range[i].second - range[i].first;
    }
    return rewrite_.add(View{offset}, {{numbers}}, std::move(seen), scope_);
  }

  /// The number of each element in its block, which is that of a tap in its window.
  ValueId numbers_in_blocks(const Type& split) { return sum_of(split, {{{5, 1}, {3, pool_.columns().stride}}}); }

  /// The number of each element in its image, as ATen counts.
  ValueId numbers_in_image(const Type& split) {
    const int64_t width = pool_.columns().size;
    return sum_of(split, {{{5, 1}, {4, pool_.columns().stride}, {3, width}, {2, pool_.rows().stride * width}}});
  }

  /// The sum of positions along dims, each so many times.
  ValueId sum_of(const Type& split, std::span<const std::pair<uint32_t, int64_t>> terms) {
    std::vector<Dim> all(split.rank(), Dim(1));
    std::optional<ValueId> sum;
    for (const auto& [dim, times] : terms) {
      std::vector<Dim> sizes(split.rank(), Dim(1));
      all[dim] = sizes[dim] = split.sizes[dim];
      const Type along = contiguous(DType::i32, std::move(sizes), split.device);
      const ValueId position = rewrite_.add(Position{dim}, {}, Type(along), scope_);
      const ValueId term = times == 1 ? position : add("mul", {{position}, {times}}, along);
      sum = sum ? add("add", {{term}, {*sum}}, contiguous(DType::i32, all, split.device)) : term;
    }
    return *sum;
  }

  Rewriter& rewrite_;
  const Pool& pool_;
  ScopeId scope_;
  Type pooled_;
};

/// Pools whose indices gradients read: where windows lie apart, nothing else.
Pools find_pools(const Graph& graph, const PassContext& context) {
  Pools pools;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (auto pool = pool_of(graph, node, context)) pools.emplace(node.results[1], *std::move(pool));
    if (Pool* pool = pool_of_gradient(graph, node, pools)) ++pool->gradients;
  }
  const std::vector<uint32_t> uses = use_counts(graph);
  for (auto& [indices, pool] : pools) pool.is_coded = pool.is_apart && pool.gradients == uses[indices.index];
  std::erase_if(pools, [](const auto& row) { return row.second.gradients == 0; });
  return pools;
}

}  // namespace

PassResult expand_pool_gradients(Graph& graph, const PassContext& context) {
  Pools pools = find_pools(graph, context);
  if (pools.empty()) return {};
  return rewrite_nodes(graph, [&](Rewriter& rewrite, const Node& node) {
    const auto pool = node.results.size() == 2 ? pools.find(node.results[1]) : pools.end();
    if (pool != pools.end() && pool->second.is_coded) {
      PoolExpansion(rewrite, pool->second, node).add_pool();
      return true;
    }
    const Pool* of = pool_of_gradient(graph, node, pools);
    if (of == nullptr) return false;
    const ValueId from = rewrite.get(*node.args[0].value()), which = rewrite.get(*node.args[gradient_indices].value());
    rewrite.set(node.results[0], PoolExpansion(rewrite, *of, node).gradient(from, which, graph.type(node.results[0])));
    return true;
  });
}

}  // namespace sinter::passes
