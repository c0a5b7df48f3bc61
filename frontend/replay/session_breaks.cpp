#include "compiler/ir/print.h"
#include "frontend/replay/session.h"
#include "frontend/torch/convert.h"
#include "frontend/torch/program_place.h"
#include "frontend/torch/stated_place.h"
#include "frontend/trace/step_difference.h"

/// What a session tells of: operators that end segments, and branches, with their places in the program.
namespace sinter::frontend {

/// Once; under fullgraph, which refuses them, always.
bool Session::tells_breaks_of(const OpTraits& traits) const {
  return undo_ || !traits.break_known.load(std::memory_order_relaxed);
}

/// Tells of an operator that ends every segment.
void Session::note_break(const OpTraits& traits, c10::ArrayRef<c10::IValue> arguments,
                         std::optional<GraphBreak> reason) {
  if (!reason) return;
  traits.break_known.store(true, std::memory_order_relaxed);
  reason->where = place_of(arguments);
  library_->note(std::move(*reason), news_);
}

/// The path of the first module that a tensor among the arguments belongs to.
std::string Session::module_of(c10::ArrayRef<c10::IValue> arguments) const {
  std::string module;
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& tensor) {
      if (module.empty()) module = library_->module_of(tensor);
    });
  }
  return module;
}

/// Where a call that takes these arguments stands in the program.
std::string Session::place_of(c10::ArrayRef<c10::IValue> arguments) const {
  if (const auto stated = stated_place()) return ir::place_text(stated->module, stated->line);
  return ir::place_text(module_of(arguments), place_here());
}

/// Tells of a branch that the program has taken for the first time. What stands at the beginning of later segments is
/// no branch: a segment may begin anywhere.
void Session::note_divergence(const PathNode& branch) {
  if (branch.sibling == nullptr || (branch.depth == 1 && account_.segments > 0)) return;
  const PathNode* known = branch.sibling;
  for (const PathNode* node = known; node != nullptr; node = node->sibling) {
    if (node->step.op == branch.step.op) known = node;
  }
  library_->note(Recompilation{.because = {difference(known->step, branch.step, branch.depth)}}, news_);
}

}  // namespace sinter::frontend
