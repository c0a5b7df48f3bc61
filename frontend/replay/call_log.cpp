#include "frontend/replay/call_log.h"

#include "frontend/torch/convert.h"

namespace sinter::frontend {
namespace {

bool has_tensor(c10::ArrayRef<c10::IValue> arguments) {
  bool found = false;
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& tensor) { found = found || tensor.defined(); });
  }
  return found;
}

bool gives_no_content(const std::string& name) {
  return name.starts_with("aten::empty") || name.starts_with("aten::new_empty");
}

}  // namespace

void CallLog::look_at(c10::ArrayRef<c10::IValue> arguments) {
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& tensor) {
      if (!tensor.defined() || !tensor.has_storage()) return;
      if (seen_.count(tensor.unsafeGetTensorImpl()) == 0) seen_.emplace(tensor.unsafeGetTensorImpl(), weaken(tensor));
    });
  }
}

void CallLog::refuse(std::string reason) {
  if (refusal_.empty()) refusal_ = std::move(reason);
}

void CallLog::note_made(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments,
                        c10::ArrayRef<c10::IValue> results) {
  if (results.size() != 1 || !results[0].isTensor() || !results[0].toTensor().has_storage()) return;
  const at::Tensor& tensor = results[0].toTensor();
  Made made{.op = {},
            .arguments = {},
            .bytes = tensor.storage().nbytes(),
            .device = tensor.device(),
            .storage = tensor.storage().getWeakStorageImpl()};
  if (!gives_no_content(op.schema().name())) {
    if (has_tensor(arguments)) return;  // an input nobody knows, should the segment read it
    made.op = op;
    made.arguments = arguments.vec();
  }
  made_.push_back(std::move(made));
}

void CallLog::note_segment(std::shared_ptr<CompiledPath> path, const TensorTable& table,
                           const KernelSurroundings& surroundings) {
  if (path_ != nullptr) return refuse("it runs several segments");
  if (surroundings != surroundings_) return refuse("it changes settings or the stream");
  path_ = std::move(path);
  const auto held = [&](TraceMemoryId memory) {
    const c10::Storage& storage = table.memories()[memory.index].held;
    storages_.push_back(storage.getWeakStorageImpl());
    return storage.unsafeGetStorageImpl();
  };
  for (const PathInput& input : path_->inputs()) {
    if (!input.value.valid()) return refuse("a number of an operator differs from call to call");
    const TraceValue& value = table.value(input.value);
    inputs_.push_back({held(value.memory), value.elements.dtype, table.offset_of(input.value), value.alignment});
  }
  for (const TraceValueId state : path_->states()) frozen_.push_back(held(table.value(state).memory));
  for (const TensorTable::Memory& memory : table.memories()) {
    if (memory.written && memory.held) written_.push_back(memory.held.unsafeGetStorageImpl());
  }
  for (const TraceMemoryId output : path_->outputs()) given_.push_back(table.memories()[output.index].storage);
}

std::vector<at::Tensor> CallLog::tensors() const {
  std::vector<at::Tensor> alive;
  for (const auto& [impl, weak] : seen_) {
    if (at::Tensor tensor = lock(weak); tensor.defined()) alive.push_back(std::move(tensor));
  }
  return alive;
}

}  // namespace sinter::frontend
