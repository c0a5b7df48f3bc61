#include "frontend/trace/call_key.h"

#include <bit>
#include <cstring>
#include <string_view>

#include "frontend/convert.h"

namespace sinter::frontend {
namespace {

enum class Kind : uint64_t { none, undefined, tensor, boolean, integer, real, complex, text, device, list };

void append(CallKey& key, Kind kind, uint64_t detail = 0) { key.push_back(static_cast<uint64_t>(kind) | detail << 8); }

void append_number(CallKey& key, Kind kind, uint64_t bits) {
  append(key, kind);
  key.push_back(bits);
}

void append_text(CallKey& key, std::string_view text) {
  append(key, Kind::text, text.size());
  for (size_t i = 0; i < text.size(); i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + i, std::min(sizeof word, text.size() - i));
    key.push_back(word);
  }
}

void append_tensor(const at::Tensor& tensor, TensorTable& table, CallKey& key) {
  if (const auto number = wrapped_number(tensor)) {
    if (const auto* flag = std::get_if<bool>(&*number)) return append_number(key, Kind::boolean, *flag ? 1 : 0);
    if (const auto* integer = std::get_if<int64_t>(&*number)) {
      return append_number(key, Kind::integer, static_cast<uint64_t>(*integer));
    }
    return append_number(key, Kind::real, std::bit_cast<uint64_t>(std::get<double>(*number)));
  }
  append(key, Kind::tensor, table.take(tensor).index);
}

}  // namespace

bool is_ordinary(const at::Tensor& tensor) {
  using c10::DispatchKey;
  constexpr c10::DispatchKeySet known({DispatchKey::Dense, DispatchKey::AutogradFunctionality,
                                       DispatchKey::ADInplaceOrView, DispatchKey::AutocastCPU,
                                       DispatchKey::AutocastCUDA});
  const c10::DispatchKeySet keys = tensor.key_set();
  const c10::DispatchKeySet functions(c10::DispatchKeySet::RAW, keys.raw_repr() & ~c10::full_backend_mask);
  if (!(functions - known).empty()) return false;
  return (tensor.is_cpu() || tensor.is_cuda()) && tensor.has_storage();
}

bool append(const c10::IValue& argument, TensorTable& table, CallKey& key) {
  if (argument.isTensor()) {
    const at::Tensor& tensor = argument.toTensor();
    if (tensor.defined()) {
      append_tensor(tensor, table, key);
    } else {
      append(key, Kind::undefined);
    }
  } else if (argument.isNone()) {
    append(key, Kind::none);
  } else if (argument.isInt()) {
    append_number(key, Kind::integer, static_cast<uint64_t>(argument.toInt()));
  } else if (argument.isBool()) {
    append_number(key, Kind::boolean, argument.toBool() ? 1 : 0);
  } else if (argument.isDouble()) {
    append_number(key, Kind::real, std::bit_cast<uint64_t>(argument.toDouble()));
  } else if (argument.isComplexDouble()) {
    const c10::complex<double> number = argument.toComplexDouble();
    append_number(key, Kind::complex, std::bit_cast<uint64_t>(number.real()));
    key.push_back(std::bit_cast<uint64_t>(number.imag()));
  } else if (argument.isString()) {
    append_text(key, argument.toStringRef());
  } else if (argument.isDevice()) {
    const c10::Device device = argument.toDevice();
    const auto index = static_cast<uint64_t>(static_cast<uint8_t>(device.index()));
    append(key, Kind::device, static_cast<uint64_t>(device.type()) << 8 | index);
  } else if (argument.isList()) {
    const auto items = argument.toListRef();
    append(key, Kind::list, items.size());
    for (const c10::IValue& item : items) {
      if (!append(item, table, key)) return false;
    }
  } else {
    return false;
  }
  return true;
}

}  // namespace sinter::frontend
