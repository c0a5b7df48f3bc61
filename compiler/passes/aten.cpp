#include "compiler/passes/aten.h"

#include <algorithm>
#include <array>

#include "compiler/ir/op_types.h"

namespace sinter::passes {
namespace {

/// Words in the names of ops that look at the data they are given, on every device, and refuse some of it.
constexpr std::array<std::string_view, 12> checks_data = {
    "linalg",         "cholesky",     "inverse",  "solve",    "_assert",   "histc",
    "segment_reduce", "searchsorted", "ctc_loss", "::normal", "lu_unpack", "pack_padded_sequence"};
/// Ops among those that go through their data like any other.
constexpr std::array<std::string_view, 2> checks_nothing = {"aten::linalg_vector_norm", "aten::linalg_cross"};
/// Words in the names of ops that do so on the CPU: elsewhere the device checks, and throws nothing.
constexpr std::array<std::string_view, 8> checks_indices = {"index", "gather", "scatter", "embedding",
                                                            "take",  "::put",  "one_hot", "max_unpool"};
constexpr std::array<std::string_view, 9> checks_values = {"nll_loss", "margin_loss", "binary_cross_entropy",
                                                           "bincount", "histogram",   "fake_quantize_per_channel",
                                                           "poisson",  "multinomial", "bernoulli"};
/// Words in the names of ops that multiply matrices, or that passes make products of.
constexpr std::array<std::string_view, 8> products = {"mm",   "mv",  "matmul", "linear",
                                                      "conv", "dot", "einsum", "attention"};

template <size_t n>
bool mentions(std::string_view name, const std::array<std::string_view, n>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

/// But for numbers alone (0-dim): traces compute sizes that way, by divisors that are no data.
bool refuses_a_divisor(const ir::Graph& graph, const ir::Node& node, const ir::Call& call, ir::Device::Kind device) {
  if (!node.results.empty() && graph.type(node.results.front()).rank() == 0) return false;
  const auto op = ir::find_aten(call.mutates.empty() ? call.op : pure_form(call));
  if (!op || ir::row(*op).domain != ir::Domain::nonzero_second) return false;
  const auto dtypes = ir::op_dtypes(graph, *op, node.args);
  return dtypes && ir::may_throw(*op, node.args, dtypes->operands, device);
}

}  // namespace

bool refuses_by_name(std::string_view op, ir::Device::Kind device) {
  if (op.starts_with("mkldnn::")) return false;  // what passes call of oneDNN
  if (!op.starts_with("aten::")) return true;
  const std::string_view base = base_name(op);
  if (base == scatter || std::ranges::find(checks_nothing, base) != checks_nothing.end()) return false;
  if (mentions(base, checks_data)) return true;
  return device == ir::Device::Kind::cpu && (mentions(base, checks_indices) || mentions(base, checks_values));
}

bool may_multiply(const ir::Graph& graph) {
  return std::ranges::any_of(graph.order(), [&](ir::NodeId id) {
    const auto* call = graph.node(id).as<ir::Call>();
    return call != nullptr && mentions(base_name(call->op), products);
  });
}

std::string_view base_name(std::string_view op) {
  const size_t colons = op.find("::");
  const size_t dot = op.find('.', colons == std::string_view::npos ? 0 : colons);
  return op.substr(0, dot);
}

const ir::Call* call_named(const ir::Node& node, std::string_view op, size_t args) {
  const auto* call = node.as<ir::Call>();
  return call != nullptr && call->op == op && node.args.size() == args ? call : nullptr;
}

std::string pure_form(const ir::Call& call) {
  if (!call.functional.empty()) return call.functional;
  const std::string_view base = base_name(call.op);
  constexpr std::string_view in_place_operator = "aten::__i";  // Python's x <<= y, "aten::__ilshift__"
  if (base.starts_with(in_place_operator) && ir::find_aten(base)) {
    return "aten::__" + call.op.substr(in_place_operator.size());
  }
  if (!base.ends_with('_') || base.ends_with("__") || !ir::find_aten(base)) return {};
  return std::string(base.substr(0, base.size() - 1)) + call.op.substr(base.size());
}

bool may_refuse(const ir::Graph& graph, const ir::Node& node) {
  const auto* call = node.as<ir::Call>();
  if (call == nullptr) return false;
  const ir::Device::Kind device =
      node.results.empty() ? graph.device.kind : graph.type(node.results.front()).device.kind;
  return refuses_by_name(call->op, device) || refuses_a_divisor(graph, node, *call, device);
}

}  // namespace sinter::passes
