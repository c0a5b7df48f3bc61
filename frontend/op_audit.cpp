#include "frontend/op_audit.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>

#include "compiler/ir/op.h"
#include "compiler/passes/decompose_rules.h"
#include "frontend/capture_facts.h"

namespace sinter::frontend {
namespace {

bool takes_outputs(const c10::FunctionSchema& schema) {
  return std::any_of(schema.arguments().begin(), schema.arguments().end(),
                     [](const c10::Argument& argument) { return argument.is_out(); });
}

bool replaces_storage(const OpFacts& facts) {
  return facts.name.starts_with("aten::resize_") || facts.name.starts_with("aten::set_");
}

AuditedOp audit(const OpFacts& facts) {
  const std::string& form = facts.functional.empty() ? facts.name : facts.functional;
  if (facts.metadata_only) return {facts.name, Coverage::answered, {}};
  if (facts.reads_host) return {facts.name, Coverage::ends, "reads a tensor to the host"};
  if (replaces_storage(facts)) return {facts.name, Coverage::ends, "changes the storage of a tensor"};
  if (const auto row = ir::find_aten(form)) {
    return {facts.name, ir::row(*row).is_native() ? Coverage::fused : Coverage::decomposed, {}};
  }
  if (passes::structural_rule(form) != nullptr) return {facts.name, Coverage::decomposed, {}};
  if (facts.composite) return {facts.name, Coverage::opened, {}};
  if (facts.sizes_from_data) return {facts.name, Coverage::ends, "the sizes of its results depend on data"};
  if (!facts.mutates.empty()) return {facts.name, Coverage::called, "ends the graph where it writes inputs or state"};
  return {facts.name, Coverage::called, {}};
}

}  // namespace

const char* name(Coverage coverage) {
  switch (coverage) {
    case Coverage::fused:
      return "fused";
    case Coverage::decomposed:
      return "decomposed";
    case Coverage::opened:
      return "opened";
    case Coverage::called:
      return "called";
    case Coverage::ends:
      return "ends";
    case Coverage::answered:
      return "answered";
  }
  return "";
}

std::vector<AuditedOp> audit_ops() {
  OpFactsCache cache;
  std::vector<AuditedOp> audited;
  for (const c10::OperatorName& op_name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!op_name.name.starts_with("aten::")) continue;
    const auto op = c10::Dispatcher::singleton().findSchema(op_name);
    if (op && !takes_outputs(op->schema())) audited.push_back(audit(cache.of(*op)));
  }
  std::sort(audited.begin(), audited.end(), [](const auto& a, const auto& b) { return a.op < b.op; });
  return audited;
}

}  // namespace sinter::frontend
