#include "frontend/trace/call_key.h"

#include "frontend/trace/call_words.h"

namespace sinter::frontend {
namespace {

/// Writes a key down.
class KeyWriter {
 public:
  KeyWriter(TensorTable& table, CallKey& key) : table_(table), key_(key) {}

  bool word(uint64_t word) { return key_.push_back(word), true; }
  bool number(uint64_t bits) { return word(bits); }
  bool tensor(const at::Tensor& tensor) { return word(tensor_word(table_.take(tensor))); }

 private:
  TensorTable& table_;
  CallKey& key_;
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

bool append(const c10::IValue& argument, TensorTable& table, CallKey& key) {
  KeyWriter writer(table, key);
  return visit_words(argument, writer);
}

}  // namespace sinter::frontend
