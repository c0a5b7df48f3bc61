#include "compiler/codegen/op_names.h"

#include "compiler/ir/op.h"

namespace sinter::codegen {

std::vector<std::string> op_names(const kernel::Kernel& kernel) {
  std::vector<std::string> names;
  for (const auto& instruction : kernel.body) {
    if (const auto* reduce = std::get_if<kernel::Reduce>(&instruction.operation)) {
      names.emplace_back(ir::row(reduce->op).name);
    }
    if (std::holds_alternative<kernel::Gather>(instruction.operation)) names.emplace_back("gather");
    const auto* compute = std::get_if<kernel::Compute>(&instruction.operation);
    if (compute == nullptr) continue;
    const auto& row = ir::row(compute->op);
    if (row.rule != ir::TypeRule::cast) names.emplace_back(row.name);
  }
  return names;
}

}  // namespace sinter::codegen
