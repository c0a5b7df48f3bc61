#include "frontend/replay/node_log.h"

#include <ATen/SequenceNumber.h>
#include <c10/core/GradMode.h>

#include "frontend/trace/shortcut.h"

namespace sinter::frontend {

void NodeLog::note_step(bool takes_numbers) {
  if (!c10::GradMode::is_enabled()) return;
  next_ = at::sequence_number::peek();
  takes_numbers_ = takes_numbers_ || takes_numbers;
}

void NodeLog::note_other(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments, uint32_t steps,
                         const TensorTable& table) {
  const NodeOrigin here = NodeOrigin::here();
  if (here.thread != origin_.thread || here.since == next_) return;
  const auto key = key_of(arguments, table);
  if (!key) {
    origin_.since = here.since;
    return;
  }
  next_ = here.since;
  history_.others.push_back(reinterpret_cast<uint64_t>(&op.schema()));
  history_.others.push_back(steps);
  history_.others.insert(history_.others.end(), key->begin(), key->end());
}

void NodeLog::note_pass(const KnownBackward& pass) {
  history_.passes.push_back(&pass);
  passes_are_known_ = true;
}

void NodeLog::clear() {
  const NodeOrigin here = NodeOrigin::here();
  origin_.since = here.thread == origin_.thread ? here.since : NodeOrigin::never;
  history_ = {};
  passes_are_known_ = true;
  takes_numbers_ = false;
}

}  // namespace sinter::frontend
