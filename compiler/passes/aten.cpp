#include "compiler/passes/aten.h"

#include <algorithm>
#include <array>

namespace sinter::passes {
namespace {

template <size_t n>
bool contains(const std::array<std::string_view, n>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

constexpr std::array<std::string_view, 2> meaning_changing = {"aten::_conj", "aten::_neg_view"};

constexpr std::array<std::string_view, 5> checks_matrices = {"linalg", "cholesky", "inverse", "solve", "_assert"};
constexpr std::array<std::string_view, 11> checks_elements = {"index",       "gather",    "scatter", "embedding",
                                                              "take",        "nll_loss",  "one_hot", "bincount",
                                                              "multinomial", "bernoulli", "ctc_loss"};

template <size_t n>
bool mentions(std::string_view name, const std::array<std::string_view, n>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

}  // namespace

std::string_view base_name(std::string_view op) {
  const size_t colons = op.find("::");
  const size_t dot = op.find('.', colons == std::string_view::npos ? 0 : colons);
  return op.substr(0, dot);
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

bool changes_meaning(std::string_view op) { return contains(meaning_changing, base_name(op)); }

bool may_throw(std::string_view op, const ir::Device& device) {
  if (!op.starts_with("aten::")) return true;
  const std::string_view base = base_name(op);
  if (base == scatter) return false;
  return mentions(base, checks_matrices) || (device.kind == ir::Device::Kind::cpu && mentions(base, checks_elements));
}

bool may_refuse(const ir::Graph& graph, const ir::Node& node) {
  const auto* call = node.as<ir::Call>();
  return call != nullptr && may_throw(call->op, graph.device);
}

}  // namespace sinter::passes
