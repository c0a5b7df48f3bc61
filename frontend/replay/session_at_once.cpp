#include <algorithm>

#include "frontend/replay/session.h"
#include "frontend/replay/way.h"

/// Operators that a session runs where they stand.
namespace sinter::frontend {

/// The same as without a log, but that nobody else calls an operator meanwhile.
void Session::run_transparent(const c10::OperatorHandle& op, const OpFacts& facts, c10::DispatchKeySet below,
                              torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size()).vec();
  run_below(op, below, stack);
  if (facts.view_in_place && table_.is_made(arguments.front().toTensor())) return;
  if (facts.view_in_place) return refuse_in_log(facts.name + " changes a tensor's sizes or strides");
  if (!facts.metadata_only) {
    log_->note_made(op, arguments, torch::jit::last(*stack, op.schema().returns().size()));
  }
}

void Session::run_now(const c10::OperatorHandle& op, const OpTraits& traits, c10::DispatchKeySet below,
                      torch::jit::Stack* stack) {
  const OpFacts& facts = traits.facts;
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  if (waits_for(table_, facts, arguments)) synchronize(facts.name);
  note_other(op, arguments);
  note_lent(arguments);
  keep_what_is_written(facts, arguments);
  account_.wrote = account_.wrote || !facts.mutates.empty() || facts.random || facts.impure;
  ++account_.at_once;
  refuse_in_log(facts.name + " runs between segments");
  run_below(op, below, stack);
}

void Session::note_lent(c10::ArrayRef<c10::IValue> arguments) {
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& tensor) {
      if (tensor.defined() && !table_.lasts(tensor)) lent_.note(tensor.storage());
    });
  }
}

/// The operator is likely to throw again, and the program to go on as it did then.
void Session::run_what_threw(const c10::OperatorHandle& op, const OpTraits& traits, c10::DispatchKeySet below,
                             torch::jit::Stack* stack) {
  const PathNode& at = *at_;
  const auto tree = tree_;
  run_now(op, traits, below, stack);
  tree->note_throw(at, op, false);
}

void Session::keep_what_is_written(const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments) {
  if (!undo_) return;
  for (const uint32_t position : written_positions(facts, arguments)) {
    for_each_tensor(arguments[position], [&](const at::Tensor& tensor) { undo_->keep(tensor); });
  }
}

/// Makes a view whose numbers differ from call to call: what it gives is met as an input, wherever it lies.
void Session::make_view(const c10::OperatorHandle& op, const OpTraits& traits, c10::DispatchKeySet below,
                        torch::jit::Stack* stack) {
  refuse_in_log(traits.facts.name + " takes numbers of the host");
  note_other(op, torch::jit::last(*stack, op.schema().arguments().size()));
  run_below(op, below, stack);
  for (const c10::IValue& result : torch::jit::last(*stack, op.schema().returns().size())) {
    for_each_tensor(result, [&](const at::Tensor& view) {
      placed_.emplace_back(view.storage().unsafeGetStorageImpl(), view.storage_offset());
    });
  }
}

bool Session::takes_placed_view(c10::ArrayRef<c10::IValue> arguments) const {
  if (placed_.empty()) return false;
  bool found = false;
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& tensor) {
      if (!tensor.defined() || !tensor.has_storage()) return;
      const Place place{tensor.storage().unsafeGetStorageImpl(), tensor.storage_offset()};
      found = found || std::ranges::find(placed_, place) != placed_.end();
    });
  }
  return found;
}

}  // namespace sinter::frontend
