#include "compiler/passes/decompose_rules.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/passes/aten.h"
#include "compiler/passes/pointwise.h"

namespace sinter::passes {
namespace {

using RuleMap = std::unordered_map<std::string_view, RuleRow>;

RuleMap all_rules() {
  RuleMap rules;
  for (const auto& table :
       {copy_rules(), batch_norm_rules(), training_norm_rules(), reduction_rules(), variance_rules(), softmax_rules(),
        layer_norm_rules(), norm_backward_rules(), group_norm_rules(), group_norm_backward_rules(), loss_rules(),
        class_loss_rules(), movement_rules(), gather_rules(), position_rules()}) {
    for (const RuleRow& row : table) rules.emplace(row.aten, row);
  }
  return rules;
}

}  // namespace

StructuralRule structural_rule(std::string_view op) {
  static const RuleMap rules = all_rules();
  if (const auto exact = rules.find(op); exact != rules.end()) return exact->second.rule;
  const auto any = rules.find(base_name(op));
  return any == rules.end() || !any->second.every_overload ? nullptr : any->second.rule;
}

bool only_first_used(const CallSite& site) {
  return std::none_of(site.results.begin() + 1, site.results.end(),
                      [](const ObservedResult& result) { return result.used; });
}

bool writes_first_result(const ir::Graph& graph, const CallSite& site) {
  const ir::Type& result = site.type();
  const bool cuda = site.context.device.backend == Backend::cuda;
  return result.device.kind == (cuda ? ir::Device::Kind::cuda : ir::Device::Kind::cpu) && only_first_used(site) &&
         is_kernel_result(graph, result) && result.numel() > 0;
}

Results only_first(const CallSite& site, ir::ValueId value) {
  Results results(site.results.size());
  results[0] = value;
  return results;
}

}  // namespace sinter::passes
