#include "frontend/command/op_audit.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <optional>

#include "compiler/ir/op.h"
#include "compiler/passes/decompose_rules.h"
#include "frontend/replay/composites.h"
#include "frontend/torch/op_facts.h"

namespace sinter::frontend {
namespace {

bool takes_outputs(const c10::FunctionSchema& schema) {
  return std::any_of(schema.arguments().begin(), schema.arguments().end(),
                     [](const c10::Argument& argument) { return argument.is_out(); });
}

bool changes_layout(const OpFacts& facts) {
  const bool resizes = facts.name.starts_with("aten::resize_") || facts.name.starts_with("aten::set_");
  return resizes || (facts.view_in_place && facts.functional.empty());
}

/// Runs at once between two segments, and is no break.
bool can_be_cut_at(const OpFacts& facts) {
  const bool plain = facts.gives_numbers || (facts.sizes_from_data && facts.mutates.empty() && !facts.reads_host);
  return plain && !facts.impure && !facts.random;
}

/// Composite operators that do work of their own.
std::optional<AuditedOp> audit_caught(const std::string& name) {
  switch (CatchComposites::work_of(name)) {
    case CatchComposites::Work::none:
    case CatchComposites::Work::compares:
    case CatchComposites::Work::packs:
      return std::nullopt;
    case CatchComposites::Work::looks:
      return AuditedOp{name, Coverage::read, "integers in an argument"};
    case CatchComposites::Work::fills:
      return AuditedOp{name, Coverage::opened, "one library call on the CPU without gradients"};
    case CatchComposites::Work::unseen:
      return AuditedOp{name, Coverage::ends, "does work of its own that no operator tells of"};
  }
  return std::nullopt;
}

AuditedOp audit(const OpFacts& facts) {
  const std::string& form = facts.functional.empty() ? facts.name : facts.functional;
  if (facts.metadata_only) return {facts.name, Coverage::answered, {}};
  if (changes_layout(facts)) return {facts.name, Coverage::ends, "changes the storage or the sizes of a tensor"};
  if (auto caught = audit_caught(facts.name)) return std::move(*caught);
  if (facts.reads_host) {
    if (can_be_cut_at(facts)) return {facts.name, Coverage::read, "its result"};
    return {facts.name, Coverage::ends, "reads a tensor to the host"};
  }
  if (const auto row = ir::find_aten(form)) {
    return {facts.name, ir::row(*row).is_native() ? Coverage::fused : Coverage::decomposed, {}};
  }
  if (passes::structural_rule(form) != nullptr) return {facts.name, Coverage::decomposed, {}};
  if (facts.composite) return {facts.name, Coverage::opened, {}};
  if (facts.sizes_from_data) {
    if (can_be_cut_at(facts)) return {facts.name, Coverage::read, "the sizes of its results, which depend on data"};
    return {facts.name, Coverage::ends, "the sizes of its results depend on data"};
  }
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
    case Coverage::read:
      return "read";
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
