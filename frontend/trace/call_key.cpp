#include "frontend/trace/call_key.h"

#include <algorithm>
#include <span>

#include "frontend/trace/call_words.h"

namespace sinter::frontend {
namespace {

/// Writes an argument down.
class KeyWriter {
 public:
  KeyWriter(bool apart, TensorTable& table, CallInWords& call)
      : apart_(apart), table_(table), call_(call), begin_(call.tensors.size()) {}

  bool word(uint64_t word) { return call_.key.push_back(word), true; }
  bool number(uint64_t bits) { return word(bits); }
  bool tensor(const at::Tensor& tensor) {
    TraceValueId value = table_.take(tensor);
    if (apart_ && was_named(value) && table_.can_be_apart(tensor)) value = table_.take_apart(tensor);
    call_.tensors.push_back(value);
    return word(tensor_word(value));
  }

 private:
  [[nodiscard]] bool was_named(TraceValueId value) const {
    const auto named = std::span(call_.tensors).subspan(begin_);
    return std::ranges::find(named, value) != named.end();
  }

  const bool apart_;
  TensorTable& table_;
  CallInWords& call_;
  const size_t begin_;  ///< of the argument's tensors
};

}  // namespace

bool is_dense(const at::Tensor& tensor) {
  using c10::DispatchKey;
  constexpr c10::DispatchKeySet known({DispatchKey::Dense, DispatchKey::AutogradFunctionality,
                                       DispatchKey::ADInplaceOrView, DispatchKey::AutocastCPU,
                                       DispatchKey::AutocastCUDA, DispatchKey::Conjugate, DispatchKey::Negative});
  const c10::DispatchKeySet keys = tensor.key_set();
  const c10::DispatchKeySet functions(c10::DispatchKeySet::RAW, keys.raw_repr() & ~c10::full_backend_mask);
  if (!(functions - known).empty()) return false;
  return (tensor.is_cpu() || tensor.is_cuda()) && tensor.has_storage();
}

bool is_ordinary(const at::Tensor& tensor) { return is_dense(tensor) && !tensor.is_conj() && !tensor.is_neg(); }

std::optional<int64_t> offset_in_values(CallArguments arguments, size_t position, const TensorTable& table) {
  const auto offset = integer_in(arguments[position]);
  if (!offset) return std::nullopt;
  return *offset - table.shift_of(*tensor_in(arguments[0]));
}

c10::IValue in_values(const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments, size_t position,
                      const TensorTable& table) {
  if (facts.storage_offset != position) return arguments[position];
  const auto offset = offset_in_values(arguments_of(arguments), position, table);
  return offset ? c10::IValue(*offset) : arguments[position];
}

std::optional<CallInWords> in_words(const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments, TensorTable& table) {
  CallInWords call;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue argument = in_values(facts, arguments, i, table);
    call.numbers.push_back(static_cast<uint32_t>(call.key.size()) + 1);
    KeyWriter writer(argument.isList() && facts.mutates.empty(), table, call);
    if (!visit_words(argument, writer)) return std::nullopt;
  }
  return call;
}

}  // namespace sinter::frontend
