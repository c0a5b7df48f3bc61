#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "compiler/support/errors.h"
#include "frontend/execute/extern_call.h"
#include "frontend/replay/session.h"
#include "frontend/torch/convert.h"
#include "runtime/stopwatch.h"

/// How a session runs what was matched where nothing is compiled for it.
namespace sinter::frontend {

/// Runs the matched steps one by one, as they were recorded. Where one throws, those before it have given what they
/// gave.
void Session::interpret() {
  ++account_.interpreted;
  const runtime::Stopwatch stopwatch;
  std::vector<c10::Storage> storages(table_.memories().size());
  for (size_t i = 0; i < storages.size(); ++i) storages[i] = table_.memories()[i].held;
  const auto steps = steps_to(*at_);
  const auto last_uses = last_uses_of(steps);
  try {
    for (const PathNode* node : steps) {
      interpret(*node, storages);
      for (const TraceMemoryId memory : last_uses[node->depth - 1]) storages[memory.index] = {};
    }
  } catch (...) {
    give(storages);
    throw;
  }
  give(storages);
  library_->note_recording(stopwatch.seconds());  // about what matching the steps has taken besides
}

/// By step: the memories that no later step looks at, and that nobody else will.
std::vector<std::vector<TraceMemoryId>> Session::last_uses_of(std::span<const PathNode* const> steps) {
  std::vector<size_t> last(table_.memories().size(), steps.size());  // beyond all: nowhere
  for (const PathNode* node : steps) {
    const auto use = [&](uint32_t value) { last[table_.value({value}).memory.index] = node->depth - 1; };
    for (const ir::Arg& argument : node->step.args) {
      ir::for_each_value(argument, [&](ir::ValueId value) { use(value.index); });
    }
    for (const TraceValueId result : node->step.results) use(result.index);
  }
  for (const TraceMemoryId memory : escaped()) last[memory.index] = steps.size();
  std::vector<std::vector<TraceMemoryId>> last_uses(steps.size());
  for (uint32_t i = 0; i < last.size(); ++i) {
    if (last[i] < steps.size()) last_uses[last[i]].push_back({i});
  }
  return last_uses;
}

void Session::interpret(const PathNode& node, std::vector<c10::Storage>& storages) {
  const Step& step = node.step;
  if (only_looks(step)) return;  // values tell where views lie
  const c10::impl::ExcludeDispatchKeyGuard no_autograd(c10::autograd_dispatch_keyset_with_ADInplaceOrView);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const c10::AutoGradMode grad_mode(needs_grad_mode(*step.op, step.results.size()));
  const auto tensor = [&](ir::ValueId id) {
    const TraceValueId value{id.index};
    return table_.over(storages[table_.value(value).memory.index], value);
  };
  const auto& declared = step.op->schema().arguments();
  std::vector<ir::Arg> args = step.args;
  for (const LiveNumber& live : numbers_) {
    if (live.step + 1 != node.depth) continue;
    args[step.numbers[live.number].argument] = std::visit([](auto value) { return ir::Arg{value}; }, live.value);
  }
  torch::jit::Stack stack;
  for (size_t i = 0; i < declared.size(); ++i) {
    stack.push_back(ivalue_of(args[i], *declared[i].real_type(), tensor, step.opaques));
  }
  step.op->callBoxed(stack);
  account_.wrote = account_.wrote || !step.written.empty();
  const auto results = tensors_of({stack.data(), stack.size()});
  if (results.size() != step.results.size()) throw InternalError("interpret", step.facts->name + " gave other results");
  for (size_t i = 0; i < results.size(); ++i) {
    const TraceValue& value = table_.value(step.results[i]);
    if (storages[value.memory.index]) continue;
    if (!value.elements.are_those_of(results[i])) {
      throw InternalError("interpret", step.facts->name + " gave other sizes or strides");
    }
    storages[value.memory.index] = results[i].storage();
  }
}

/// Gives the memories that outlive the segment what was computed.
void Session::give(std::vector<c10::Storage>& storages) {
  for (const TraceMemoryId memory : escaped()) {
    const auto storage = table_.memory(memory).storage.lock();
    if (!storage || !storages[memory.index]) continue;
    at::Tensor data = table_.over(std::move(storages[memory.index]), table_.known(memory).root);
    give_memory(*storage, std::move(data));
  }
}

}  // namespace sinter::frontend
