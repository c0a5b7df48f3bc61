#include "compiler/passes/lift_convolutions.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/passes/convolution.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

constexpr std::array<size_t, 2> forward_lines = {convolution_input, convolution_weight};
constexpr std::array<size_t, 2> forward_ones = {convolution_stride, convolution_dilation};
constexpr std::array<size_t, 2> forward_zeros = {convolution_padding, 7};
/// Of the output, the input and the weight.
constexpr std::array<size_t, 3> backward_lines = {0, 1, 2};
constexpr std::array<size_t, 2> backward_ones = {4, 6};
constexpr std::array<size_t, 2> backward_zeros = {5, 8};

/// The arguments of an op, by positions.
struct Row {
  std::string_view op;
  size_t args = 0;
  std::span<const size_t> lines;
  std::span<const size_t> ones;   ///< lists whose number for a dim of one element is 1: strides, dilations
  std::span<const size_t> zeros;  ///< whose number is 0: paddings
};

constexpr std::array rows = {
    Row{"aten::convolution", 9, forward_lines, forward_ones, forward_zeros},
    Row{"aten::_convolution", 13, forward_lines, forward_ones, forward_zeros},
    Row{"aten::convolution_backward", convolution_backward_arguments, backward_lines, backward_ones, backward_zeros},
};

bool is_line(const Type& type) { return type.rank() == 3 && type.is_static(); }

const Row* row_of(const Graph& graph, const Node& node) {
  const auto* call = node.as<Call>();
  if (call == nullptr) return nullptr;
  const auto found = std::ranges::find(rows, call->op, &Row::op);
  if (found == rows.end() || node.args.size() != found->args) return nullptr;
  const auto is_line_at = [&](size_t at) {
    const auto* value = node.args[at].value();
    return value != nullptr && is_line(graph.type(*value));
  };
  const auto is_number_at = [&](size_t at) {
    const auto* list = std::get_if<ArgList>(&node.args[at].data);
    return list != nullptr && list->size() == 1;
  };
  const bool fits = std::ranges::all_of(found->lines, is_line_at) && std::ranges::all_of(found->ones, is_number_at) &&
                    std::ranges::all_of(found->zeros, is_number_at);
  return fits ? &*found : nullptr;
}

/// A line as an image of one row.
Type lifted(Type line) {
  const int64_t row = line.strides[2].constant() * line.sizes[2].constant();
  line.sizes.insert(line.sizes.begin() + 2, Dim(1));
  line.strides.insert(line.strides.begin() + 2, Dim(row));
  return line;
}

void lift(Rewriter& rewrite, const Node& node, const Row& row) {
  const Graph& old = rewrite.old();
  std::vector<Arg> args = rewrite.map_args(node.args);
  for (const size_t at : row.lines) {
    Type image = lifted(old.type(*node.args[at].value()));
    args[at] = {rewrite.add(View{0}, {args[at]}, std::move(image), node.scope)};
  }
  const auto put_first = [&](size_t at, int64_t number) {
    auto& numbers = std::get<ArgList>(args[at].data);
    numbers.insert(numbers.begin(), Arg{number});
  };
  for (const size_t at : row.ones) put_first(at, 1);
  for (const size_t at : row.zeros) put_first(at, 0);
  std::vector<Type> types;
  for (const ValueId result : node.results) {
    types.push_back(is_line(old.type(result)) ? lifted(old.type(result)) : old.type(result));
  }
  const NodeId added =
      rewrite.next().add(node.payload, std::move(args), std::move(types), rewrite.map_scope(node.scope));
  for (size_t i = 0; i < node.results.size(); ++i) {
    const Type& line = old.type(node.results[i]);
    const ValueId image = rewrite.next().node(added).results[i];
    rewrite.set(node.results[i], is_line(line) ? rewrite.add(View{0}, {{image}}, line, node.scope) : image);
  }
}

}  // namespace

PassResult lift_convolutions(Graph& graph, const PassContext& context) {
  if (context.device.backend != Backend::cuda) return {};
  return rewrite_nodes(graph, [&](Rewriter& rewrite, const Node& node) {
    const Row* row = row_of(graph, node);
    if (row != nullptr) lift(rewrite, node, *row);
    return row != nullptr;
  });
}

}  // namespace sinter::passes
