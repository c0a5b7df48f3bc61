#include "compiler/ir/size_rules.h"

#include <algorithm>

namespace sinter::ir {
namespace {

/// A dim that windows slide over: its result has (size + shift) / stride + 1 places, rounded down.
struct WindowRule {
  int64_t shift = 0;
  int64_t stride = 1;
};

/// Element `i` of a list argument; lists of one hold for all dims, empty ones give `otherwise`.
std::optional<int64_t> element(const Node& node, size_t position, size_t i, std::optional<int64_t> otherwise) {
  const ArgList* list = position < node.args.size() ? node.args[position].list() : nullptr;
  if (list == nullptr) return std::nullopt;
  if (list->empty()) return otherwise;
  const Arg& arg = (*list)[list->size() == 1 ? 0 : i];
  const auto* number = i < list->size() || list->size() == 1 ? std::get_if<int64_t>(&arg.data) : nullptr;
  return number == nullptr ? std::nullopt : std::optional(*number);
}

bool is_set(const Node& node, size_t position) {
  const bool* flag = position < node.args.size() ? std::get_if<bool>(&node.args[position].data) : nullptr;
  return flag != nullptr && *flag;
}

std::optional<WindowRule> rule(std::optional<int64_t> kernel, std::optional<int64_t> stride,
                               std::optional<int64_t> padding, std::optional<int64_t> dilation) {
  if (!kernel || !stride || !padding || !dilation || *stride < 1) return std::nullopt;
  return WindowRule{.shift = 2 * *padding - *dilation * (*kernel - 1) - 1, .stride = *stride};
}

/// convolution(input, weight, bias, stride, padding, dilation, transposed, ...)
std::optional<WindowRule> convolution_rule(const Graph& graph, const Node& node, uint32_t dim) {
  if (is_set(node, 6) || node.args.size() < 7 || dim < 2) return std::nullopt;
  const ValueId* weight = node.args[1].value();
  if (weight == nullptr || graph.type(*weight).rank() <= dim) return std::nullopt;
  const size_t i = dim - 2;
  return rule(graph.type(*weight).sizes[dim].value(), element(node, 3, i, std::nullopt),
              element(node, 4, i, std::nullopt), element(node, 5, i, std::nullopt));
}

/// The windows of a pooling over the last dims; an empty stride is the kernel.
std::optional<WindowRule> pooling_rule(const Graph& graph, const Node& node, uint32_t dim, bool dilated) {
  const ArgList* kernel = node.args.size() > 1 ? node.args[1].list() : nullptr;
  if (kernel == nullptr || is_set(node, dilated ? 5 : 4)) return std::nullopt;
  const size_t outer = graph.type(node.results[0]).rank() - kernel->size();
  if (dim < outer) return std::nullopt;
  const size_t i = dim - outer;
  const auto size = element(node, 1, i, std::nullopt);
  return rule(size, element(node, 2, i, size), element(node, 3, i, std::nullopt),
              dilated ? element(node, 4, i, std::nullopt) : std::optional<int64_t>(1));
}

std::optional<WindowRule> window_rule(const Graph& graph, const Node& node, const std::string& op, uint32_t dim) {
  if (op == "aten::convolution" || op == "aten::convolution_overrideable") return convolution_rule(graph, node, dim);
  if (op == "aten::max_pool2d_with_indices") return pooling_rule(graph, node, dim, true);
  if (op == "aten::avg_pool2d") return pooling_rule(graph, node, dim, false);
  return std::nullopt;
}

SizeId after_window(const WindowRule& rule, SizeId size, SizeTable& table) {
  SizeId term = table.affine(size, 1, rule.shift);
  if (rule.stride > 1) term = table.quotient(term, rule.stride);
  return table.affine(term, 1, 1);
}

std::optional<int64_t> number(const Node& node, size_t position) {
  const auto* number = position < node.args.size() ? std::get_if<int64_t>(&node.args[position].data) : nullptr;
  return number == nullptr ? std::nullopt : std::optional(*number);
}

/// A dim as LibTorch counts them, from the end where it is negative.
std::optional<uint32_t> dim_of(const Graph& graph, ValueId value, std::optional<int64_t> dim) {
  const auto rank = static_cast<int64_t>(graph.type(value).rank());
  if (!dim || *dim < -rank || *dim >= rank) return std::nullopt;
  return static_cast<uint32_t>(*dim < 0 ? *dim + rank : *dim);
}

/// diagonal(self, offset, dim1, dim2): the last dim of the result.
std::optional<SizeId> diagonal_size(const Graph& graph, const Node& node, ValueId self, uint32_t dim, SizeTable& table,
                                    const SizeOf& size_of) {
  const auto offset = number(node, 1);
  if (!offset || dim + 1 != graph.type(node.results[0]).rank()) return std::nullopt;
  const auto rows = dim_of(graph, self, number(node, 2));
  const auto columns = dim_of(graph, self, number(node, 3));
  if (!rows || !columns) return std::nullopt;
  return table.minimum(table.affine(size_of(self, *rows), 1, std::min<int64_t>(*offset, 0)),
                       table.affine(size_of(self, *columns), 1, -std::max<int64_t>(*offset, 0)));
}

/// slice(self, dim, start, end, step), counted from the beginning.
std::optional<SizeId> slice_size(const Graph& graph, const Node& node, ValueId self, uint32_t dim, SizeTable& table,
                                 const SizeOf& size_of) {
  if (dim_of(graph, self, number(node, 1)) != dim) return std::nullopt;
  const auto start = number(node, 2);
  const auto end = number(node, 3);
  const auto step = number(node, 4);
  if (!start || !end || !step || *start < 0 || *end < *start || *step < 1) return std::nullopt;
  const SizeId last = table.minimum(size_of(self, dim), table.constant(*end));
  const SizeId places = table.affine(last, 1, *step - 1 - *start);
  return *step == 1 ? places : table.quotient(places, *step);
}

}  // namespace

std::optional<SizeId> size_by_rule(const Graph& graph, const Node& node, uint32_t dim, SizeTable& table,
                                   const SizeOf& size_of) {
  const auto* call = node.as<Call>();
  const ValueId* first = call == nullptr || node.args.empty() ? nullptr : node.args[0].value();
  if (first == nullptr || node.results.empty()) return std::nullopt;
  if (call->op == "aten::diagonal") return diagonal_size(graph, node, *first, dim, table, size_of);
  if (call->op == "aten::slice.Tensor") return slice_size(graph, node, *first, dim, table, size_of);
  const auto window = window_rule(graph, node, call->op, dim);
  if (!window || dim >= graph.type(*first).rank()) return std::nullopt;
  return after_window(*window, size_of(*first, dim), table);
}

}  // namespace sinter::ir
