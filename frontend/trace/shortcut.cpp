#include "frontend/trace/shortcut.h"

#include <algorithm>

#include "compiler/support/planted.h"
#include "frontend/trace/call_key.h"
#include "frontend/trace/call_words.h"
#include "frontend/trace/path_tree.h"

namespace sinter::frontend {
namespace {

bool take_step(const PathNode& node, const KnownKeyReader& arguments, TensorTable& table) {
  const Step& step = node.step;
  size_t memories = 0;
  const auto next_memory = [&](const TraceValue& value) -> const TraceMemory* {
    return value.memory.index < table.memories().size() ? nullptr : &step.memories[memories++];
  };
  for (const TraceValue& value : step.taken) {
    const at::Tensor* tensor = arguments.arrival({static_cast<uint32_t>(table.size())});
    if (tensor == nullptr || !table.take_as(value, next_memory(value), *tensor)) return false;
  }
  for (const TraceValue& value : step.made) {
    if (const TraceMemory* memory = next_memory(value)) table.add(*memory, c10::Storage());
    if (!table.can_be_value(value)) return false;
    table.add(value);
  }
  return std::ranges::all_of(step.written, [&](TraceMemoryId memory) { return table.can_write(memory); });
}

}  // namespace

bool KnownKeyWriter::tensor(const at::Tensor& tensor) {
  if (!is_dense(tensor)) return false;
  const TraceValueId value = table_.find_alone(tensor);
  return value.valid() && word(tensor_word(value));
}

bool KnownKeyReader::number(uint64_t bits) { return word(bits) || planted(Bug::shortcut_not_compared); }

bool KnownKeyReader::tensor(const at::Tensor& tensor) {
  if (next_ == key_.size() || !is_dense(tensor)) return false;
  const uint64_t expected = key_[next_++];
  const TraceValueId value{static_cast<uint32_t>(expected >> 8)};
  if (expected != tensor_word(value)) return false;
  if (value.index < table_.size()) return table_.is(value, tensor);
  arrivals_.emplace_back(value, &tensor);
  return true;
}

const at::Tensor* KnownKeyReader::arrival(TraceValueId value) const {
  const auto* found = std::ranges::find(arrivals_, value, [](const auto& arrival) { return arrival.first; });
  return found == arrivals_.end() ? nullptr : found->second;
}

bool KnownKeyReader::are_all(const TensorTable& table) const {
  return std::ranges::all_of(arrivals_, [&](const auto& arrival) { return table.is(arrival.first, *arrival.second); });
}

std::optional<CallKey> key_of(c10::ArrayRef<c10::IValue> arguments, const TensorTable& table) {
  CallKey key;
  KnownKeyWriter writer(table, key);
  for (const c10::IValue& argument : arguments) {
    if (!visit_words(argument, writer)) return std::nullopt;
  }
  return key;
}

bool take(std::span<const PathNode* const> steps, const KnownKeyReader& arguments, TensorTable& table) {
  for (const PathNode* node : steps) {
    if (node->live.load(std::memory_order_relaxed) != 0 || !take_step(*node, arguments, table)) return false;
  }
  return arguments.are_all(table);
}

bool take(const Shortcut& shortcut, CallArguments arguments, TensorTable& table) {
  KnownKeyReader reader(shortcut.key, table);
  for (const CallArgument& argument : arguments) {
    if (!visit_words(argument, reader)) return false;
  }
  return reader.at_end() && take(shortcut.steps, reader, table);
}

}  // namespace sinter::frontend
