#include "frontend/trace/call_match.h"

#include <algorithm>

#include "compiler/support/planted.h"
#include "frontend/trace/call_key.h"
#include "frontend/trace/call_words.h"
#include "frontend/trace/refused_data.h"

namespace sinter::frontend {
namespace {

/// Follows the key of a step.
class KeyReader {
 public:
  KeyReader(const Step& step, TensorTable& table, CallNumbers& numbers)
      : step_(step), table_(table), numbers_(numbers) {}

  [[nodiscard]] bool at_end() const { return next_ == step_.key.size() && taken_ == step_.taken.size(); }

  bool word(uint64_t word) { return next_ < step_.key.size() && step_.key[next_++] == word; }

  bool number(uint64_t bits) {
    const size_t position = numbers_.bits.size();
    if (position == step_.numbers.size() || step_.numbers[position].word != next_) return word(bits);
    numbers_.bits.push_back(bits);
    if (step_.key[next_++] == bits || planted(Bug::numbers_not_compared)) return true;
    numbers_.differing |= uint64_t{1} << position;
    return step_.numbers[position].takes(bits);
  }

  bool tensor(const at::Tensor& tensor) {
    if (next_ == step_.key.size() || !is_dense(tensor)) return false;
    const uint64_t expected = step_.key[next_++];
    const TraceValueId value{static_cast<uint32_t>(expected >> 8)};
    if (expected != tensor_word(value)) return false;
    if (value.index < table_.size()) return table_.is(value, tensor);
    if (taken_ == step_.taken.size()) return false;
    const TraceValue& taken = step_.taken[taken_++];
    const bool met = taken.memory.index < table_.memories().size();
    return table_.take_as(taken, met ? nullptr : &step_.memories[memories_++], tensor);
  }

 private:
  const Step& step_;
  TensorTable& table_;
  CallNumbers& numbers_;
  size_t next_ = 0;      ///< word
  size_t taken_ = 0;     ///< values
  size_t memories_ = 0;  ///< of those: they come first among the memories that a step adds
};

}  // namespace

bool is_call_of(const Step& step, CallArguments arguments, TensorTable& table, CallNumbers& numbers) {
  KeyReader reader(step, table, numbers);
  const auto& counts_from_storage = step.facts->storage_offset;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto offset = counts_from_storage == i ? offset_in_values(arguments, i, table) : std::nullopt;
    if (!visit_words(offset ? CallArgument(*offset) : arguments[i], reader)) return false;
  }
  const auto can_be_value = [&](const TraceValue& made) { return table.can_be_value(made); };
  const auto can_write = [&](TraceMemoryId memory) { return table.can_write(memory); };
  if (!reader.at_end() || !std::ranges::all_of(step.made, can_be_value)) return false;
  if (!std::ranges::all_of(step.written, can_write)) return false;
  return step.data_rule == nullptr || accepts_data(*step.data_rule, boxed(arguments), table);
}

}  // namespace sinter::frontend
