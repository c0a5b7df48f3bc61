#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/passes/pass.h"

namespace sinter::passes {

/// A result of a call as it was observed.
struct ObservedResult {
  ir::Type type;
  bool used = false;  ///< something in the graph reads it, or it is an output
};

/// A pure ATen call as a rule sees it. `args` are values of the graph under construction.
struct CallSite {
  std::string_view op;
  std::span<const ir::Arg> args;
  std::span<const ObservedResult> results;  ///< at least one; those that were undefined are left out
  ir::ScopeId scope;
  const PassContext& context;

  [[nodiscard]] const ir::Type& type() const { return results[0].type; }
};

/// What stands for the results of a call, one for each; those that nothing uses need not be valid.
using Results = std::vector<ir::ValueId>;

/// Adds nodes that compute the used results of a call, with exactly the observed types, each in memory of its own.
/// Nothing (and only dead nodes added) where the rule does not hold.
using StructuralRule = std::optional<Results> (*)(ir::Graph&, const CallSite&);

/// One rule of a table of them.
struct RuleRow {
  std::string_view aten;  ///< "aten::clone", "aten::sum.dim_IntList"
  StructuralRule rule;
  bool every_overload = false;  ///< `aten` stands for every overload, not for the one without a name
};

[[nodiscard]] std::span<const RuleRow> copy_rules();           ///< copies, conversions, constants
[[nodiscard]] std::span<const RuleRow> batch_norm_rules();     ///< batch norm in inference
[[nodiscard]] std::span<const RuleRow> training_norm_rules();  ///< and in training, with its gradient
[[nodiscard]] std::span<const RuleRow> reduction_rules();      ///< sums, means, extremes, norms of vectors
[[nodiscard]] std::span<const RuleRow> variance_rules();
[[nodiscard]] std::span<const RuleRow> softmax_rules();        ///< softmax and its kin, with their gradients
[[nodiscard]] std::span<const RuleRow> layer_norm_rules();     ///< layer norm and RMS norm
[[nodiscard]] std::span<const RuleRow> norm_backward_rules();  ///< and their gradients
[[nodiscard]] std::span<const RuleRow> group_norm_rules();
[[nodiscard]] std::span<const RuleRow> loss_rules();  ///< losses and their gradients
[[nodiscard]] std::span<const RuleRow> class_loss_rules();
[[nodiscard]] std::span<const RuleRow> movement_rules();  ///< tensors side by side, padded, rolled
[[nodiscard]] std::span<const RuleRow> gather_rules();    ///< elements at places that tensors tell
[[nodiscard]] std::span<const RuleRow> position_rules();  ///< counting and triangles
[[nodiscard]] std::span<const RuleRow> group_norm_backward_rules();

/// The rule for an ATen op that is no row of the op table; nullptr when there is none.
[[nodiscard]] StructuralRule structural_rule(std::string_view op);

/// True when nothing uses any result but the first.
[[nodiscard]] bool only_first_used(const CallSite& site);
/// True when only the first result is used, and a kernel on the device that is compiled for can write its elements.
[[nodiscard]] bool writes_first_result(const ir::Graph& graph, const CallSite& site);
/// Results of a call of which only the first is used.
[[nodiscard]] Results only_first(const CallSite& site, ir::ValueId value);

}  // namespace sinter::passes
