#include "compiler/ir/size_rules.h"

namespace sinter::ir {
namespace {

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
  return WindowRule{.operand = 0, .shift = 2 * *padding - *dilation * (*kernel - 1) - 1, .stride = *stride};
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

}  // namespace

std::optional<WindowRule> window_rule(const Graph& graph, const Node& node, uint32_t dim) {
  const auto* call = node.as<Call>();
  if (call == nullptr || node.results.empty()) return std::nullopt;
  if (call->op == "aten::convolution" || call->op == "aten::convolution_overrideable") {
    return convolution_rule(graph, node, dim);
  }
  if (call->op == "aten::max_pool2d_with_indices") return pooling_rule(graph, node, dim, true);
  if (call->op == "aten::avg_pool2d") return pooling_rule(graph, node, dim, false);
  return std::nullopt;
}

}  // namespace sinter::ir
