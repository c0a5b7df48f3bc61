#include "frontend/replay/step_recorder.h"

#include <algorithm>

#include "frontend/replay/autograds_part.h"
#include "frontend/replay/way.h"
#include "frontend/torch/convert.h"
#include "frontend/torch/stated_place.h"
#include "frontend/torch/tensor_memory.h"
#include "frontend/trace/call_key.h"
#include "frontend/trace/numbers.h"

namespace sinter::frontend {
namespace {

bool is_tensor(const c10::IValue& argument, const at::Tensor& tensor) {
  return argument.isTensor() && argument.toTensor().is_same(tensor);
}

/// The argument whose memory a result sees. What another dtype sees in it counts as a new tensor in LibTorch.
std::optional<uint32_t> base_of(const OpFacts& facts, const at::Tensor& result, c10::ArrayRef<c10::IValue> arguments) {
  if (facts.name == "aten::view.dtype") return std::nullopt;
  for (uint32_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].isTensor() || !arguments[i].toTensor().defined() || !arguments[i].toTensor().has_storage())
      continue;
    const c10::StorageImpl* storage = storage_of(*arguments[i].toTensor().unsafeGetTensorImpl());
    if (storage == storage_of(*result.unsafeGetTensorImpl())) return i;
  }
  return std::nullopt;
}

/// What as_strided takes where it is given none, as in_values counts it.
int64_t own_offset(const at::Tensor& tensor, const TensorTable& table) {
  return tensor.storage_offset() - table.shift_of(tensor);
}

}  // namespace

Returned returned_like(const OpFacts& facts, const c10::IValue& result, c10::ArrayRef<c10::IValue> arguments,
                       const std::function<TraceValueId(const at::Tensor&)>& value_of) {
  Returned item;
  if (result.isTensor() && result.toTensor().defined()) {
    const at::Tensor& tensor = result.toTensor();
    for (uint32_t i = 0; i < arguments.size(); ++i) {
      if (is_tensor(arguments[i], tensor)) return {.how = Returned::How::argument, .argument = i};
    }
    item.how = Returned::How::value;
    item.value = value_of(tensor);
    item.base = base_of(facts, tensor, arguments);
    if (!item.base) item.writes = static_cast<uint32_t>(version_of(tensor));
  } else if (result.isTensorList()) {
    item.how = Returned::How::list;
    for (const at::Tensor& tensor : result.toTensorVector()) {
      item.items.push_back(returned_like(facts, c10::IValue(tensor), arguments, value_of));
    }
  } else {
    item.constant = result;
  }
  return item;
}

StepRecorder::StepRecorder(const c10::OperatorHandle& op, const OpTraits& traits, CallInWords call,
                           c10::ArrayRef<c10::IValue> arguments, TensorTable& table, std::string module)
    : table_(table),
      arguments_(arguments.vec()),
      step_{.op = op,
            .facts = &traits.facts,
            .key = std::move(call.key),
            .above = traits.above,
            .settings = settings_of(traits.concerns, arguments_),
            .data_rule = may_refuse(traits, arguments) ? traits.data_rule : nullptr} {
  const TensorToArg encoder = [&](const at::Tensor& tensor) -> ir::Arg {
    if (const auto number = wrapped_number(tensor)) {
      return std::visit([](auto value) { return ir::Arg{value}; }, *number);
    }
    values_.emplace_back(tensor, call.tensors.at(values_.size()));
    return {ir::ValueId{values_.back().second.index}};
  };
  if (const auto stated = stated_place()) {
    step_.module = stated->module;
    step_.source = stated->line;
  }
  if (step_.module.empty()) step_.module = std::move(module);
  const auto& declared = op.schema().arguments();
  for (size_t i = 0; i < declared.size(); ++i) {
    c10::IValue argument = in_values(traits.facts, arguments_, i, table_);
    if (argument.isNone() && traits.facts.storage_offset == i) argument = own_offset(arguments_[0].toTensor(), table_);
    step_.args.push_back(arg_of(argument, *declared[i].real_type(), encoder, step_.opaques));
  }
  step_.numbers = numbers_of(traits.facts, arguments_, call.numbers);
  const auto added = table_.added();
  for (const TraceValue* value : added.values) step_.taken.push_back(*value);
  note_writes();
}

void StepRecorder::note_writes() {
  step_.mutates = written_positions(*step_.facts, arguments_);
  for (const uint32_t position : step_.mutates) {
    for_each_tensor(arguments_[position], [&](const at::Tensor& tensor) {
      const TraceMemoryId memory = table_.value(value_of(tensor)).memory;
      if (std::ranges::find(step_.written, memory) == step_.written.end()) step_.written.push_back(memory);
      written_.push_back(Elements::of(tensor));
    });
  }
  versions_ = versions_of_written(step_, arguments_of(arguments_));
}

void StepRecorder::note_raised() {
  const auto now = versions_of_written(step_, arguments_of(arguments_));
  if (now == versions_) return;
  for (size_t i = 0; i < now.size(); ++i) step_.raised.push_back(static_cast<uint32_t>(now[i] - versions_[i]));
}

bool StepRecorder::are_as_they_were() const {
  bool same = true;
  size_t next = 0;
  for (const uint32_t position : step_.mutates) {
    for_each_tensor(arguments_[position],
                    [&](const at::Tensor& tensor) { same = same && written_[next++].are_those_of(tensor); });
  }
  return same;
}

/// That of the argument whose storage a result lies in; invalid where it lies in none's.
TraceMemoryId StepRecorder::memory_seen_by(const at::Tensor& result) const {
  const auto seen = std::ranges::find_if(values_, [&](const auto& known) { return known.first.is_alias_of(result); });
  return seen == values_.end() ? TraceMemoryId() : table_.value(seen->second).memory;
}

TraceValueId StepRecorder::value_of(const at::Tensor& tensor) const {
  const auto found = std::ranges::find_if(values_, [&](const auto& known) { return known.first.is_same(tensor); });
  return found == values_.end() ? TraceValueId() : found->second;
}

/// False for a result that no segment can give.
bool StepRecorder::add_result(const at::Tensor& tensor) {
  if (!is_dense(tensor) || !table_.can_be_value(tensor)) return false;
  const size_t before = table_.size();
  const TraceValueId given = value_of(tensor);
  const TraceValueId id = given.valid() ? given : table_.give(tensor, memory_seen_by(tensor));
  values_.emplace_back(tensor, id);
  step_.results.push_back(id);
  if (table_.size() == before) return true;
  const TraceValue& value = table_.value(id);
  const TraceMemory& memory = table_.known(value.memory);
  if (memory.root == id) return value.elements.reading.plain() && (!memory.fresh || value.elements.offset == 0);
  if (table_.lies_in_first(value.elements, value.memory)) return true;
  const Elements& root = table_.value(memory.root).elements;
  return root.dtype != value.elements.dtype && !table_.memory(value.memory).written;
}

std::optional<Step> StepRecorder::finish(c10::ArrayRef<c10::IValue> results) {
  if (!are_as_they_were()) return std::nullopt;
  note_raised();
  for (const at::Tensor& tensor : tensors_of({results.data(), results.size()})) {
    if (!add_result(tensor)) return std::nullopt;
  }
  const auto known = [this](const at::Tensor& tensor) { return value_of(tensor); };
  for (const c10::IValue& result : results) {
    step_.returns.push_back(returned_like(*step_.facts, result, arguments_, known));
  }
  const auto added = table_.added();
  for (const TraceValue* value : added.values.subspan(step_.taken.size())) step_.made.push_back(*value);
  for (const TraceMemory* memory : added.memories) step_.memories.push_back(*memory);
  return std::move(step_);
}

}  // namespace sinter::frontend
