#include "compiler/passes/onednn_calls.h"

#include <array>

#include "compiler/passes/aten.h"

namespace sinter::passes {
namespace {

struct ActivationRow {
  std::string_view op;
  size_t args;  ///< the second, where there is one, is the algorithm
  std::string_view name;
};

/// Those that give NaN for NaN. oneDNN's ReLU gives 0.
constexpr std::array activations = {
    ActivationRow{"aten::gelu", 2, "gelu"},
    ActivationRow{"aten::silu", 1, "swish"},
};

}  // namespace

std::optional<Activation> onednn_activation(const ir::Node& node) {
  for (const ActivationRow& row : activations) {
    if (call_named(node, row.op, row.args) == nullptr || node.args[0].value() == nullptr) continue;
    if (row.args == 1) return Activation{std::string(row.name), {}};
    const auto* algorithm = std::get_if<std::string>(&node.args[1].data);
    return algorithm == nullptr ? std::nullopt : std::optional(Activation{std::string(row.name), *algorithm});
  }
  return std::nullopt;
}

ir::Type packed_weight(const ir::Type& weight) { return ir::contiguous(ir::DType::other, weight.sizes, weight.device); }

ir::Call onednn_call(std::string_view op) {
  ir::Call call;
  call.op = op;
  return call;
}

}  // namespace sinter::passes
