#pragma once

#include <ATen/core/ivalue.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "frontend/torch/call_argument.h"
#include "frontend/torch/convert.h"
#include "frontend/trace/step.h"

/// How arguments are put into words: one that tells what it is, then, for some, its bits. A visitor has `word`,
/// `number` (a word that may be a number of the step) and `tensor` (for tensors of memory); visiting ends where one of
/// them answers false.
namespace sinter::frontend {

enum class WordKind : uint64_t { none, undefined, tensor, boolean, integer, real, complex, text, device, list };

[[nodiscard]] constexpr uint64_t word_of(WordKind kind, uint64_t detail = 0) {
  return static_cast<uint64_t>(kind) | detail << 8;
}
[[nodiscard]] constexpr uint64_t tensor_word(TraceValueId value) { return word_of(WordKind::tensor, value.index); }

template <class Visitor>
bool visit_number(const ir::Scalar& number, Visitor& visitor) {
  if (const auto* flag = std::get_if<bool>(&number)) {
    return visitor.word(word_of(WordKind::boolean)) && visitor.number(*flag ? 1 : 0);
  }
  if (const auto* integer = std::get_if<int64_t>(&number)) {
    return visitor.word(word_of(WordKind::integer)) && visitor.number(static_cast<uint64_t>(*integer));
  }
  const auto* real = std::get_if<double>(&number);
  return real != nullptr && visitor.word(word_of(WordKind::real)) && visitor.number(std::bit_cast<uint64_t>(*real));
}

template <class Visitor>
bool visit_tensor(const at::Tensor& tensor, Visitor& visitor) {
  if (!tensor.defined()) return visitor.word(word_of(WordKind::undefined));
  if (!tensor.unsafeGetTensorImpl()->is_wrapped_number()) return visitor.tensor(tensor);
  const auto number = wrapped_number(tensor);
  return number ? visit_number(*number, visitor) : visitor.tensor(tensor);
}

template <class Visitor>
bool visit_text(std::string_view text, Visitor& visitor) {
  if (!visitor.word(word_of(WordKind::text, text.size()))) return false;
  for (size_t i = 0; i < text.size(); i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + i, std::min(sizeof word, text.size() - i));
    if (!visitor.word(word)) return false;
  }
  return true;
}

template <class Visitor>
bool visit_complex(const c10::complex<double>& number, Visitor& visitor) {
  return visitor.word(word_of(WordKind::complex)) && visitor.word(std::bit_cast<uint64_t>(number.real())) &&
         visitor.word(std::bit_cast<uint64_t>(number.imag()));
}

namespace detail {

/// Puts an argument into words. False also for what cannot be compared.
template <class Visitor>
struct VisitWords {
  Visitor& visitor;

  bool operator()(std::monostate) const { return visitor.word(word_of(WordKind::none)); }
  bool operator()(const at::Tensor& tensor) const { return visit_tensor(tensor, visitor); }
  bool operator()(const at::Tensor* tensor) const { return (*this)(*tensor); }
  bool operator()(bool flag) const { return visit_number(ir::Scalar{flag}, visitor); }
  bool operator()(int64_t number) const { return visit_number(ir::Scalar{number}, visitor); }
  bool operator()(double number) const { return visit_number(ir::Scalar{number}, visitor); }
  bool operator()(const c10::complex<double>& number) const {
    return visitor.word(word_of(WordKind::complex)) && visitor.word(std::bit_cast<uint64_t>(number.real())) &&
           visitor.word(std::bit_cast<uint64_t>(number.imag()));
  }
  bool operator()(std::string_view text) const { return visit_text(text, visitor); }
  bool operator()(c10::Device device) const {
    const auto index = static_cast<uint64_t>(static_cast<uint8_t>(device.index()));
    return visitor.word(word_of(WordKind::device, static_cast<uint64_t>(device.type()) << 8 | index));
  }
  template <class Item>
  bool operator()(c10::ArrayRef<Item> items) const {
    if (!visitor.word(word_of(WordKind::list, items.size()))) return false;
    for (const Item& item : items) {
      if (!(*this)(item)) return false;
    }
    return true;
  }
  bool operator()(const c10::IValue* value) const { return (*this)(*value); }
  bool operator()(const c10::IValue& value) const {
    if (value.isTensor()) return (*this)(value.toTensor());
    if (value.isNone()) return (*this)(std::monostate());
    if (value.isInt()) return (*this)(value.toInt());
    if (value.isBool()) return (*this)(value.toBool());
    if (value.isDouble()) return (*this)(value.toDouble());
    if (value.isString()) return (*this)(std::string_view(value.toStringRef()));
    if (value.isComplexDouble()) return (*this)(value.toComplexDouble());
    if (value.isDevice()) return (*this)(value.toDevice());
    return value.isList() && (*this)(value.toListRef());
  }
};

}  // namespace detail

template <class Visitor>
bool visit_words(const c10::IValue& argument, Visitor& visitor) {
  return detail::VisitWords<Visitor>{visitor}(argument);
}

template <class Visitor>
bool visit_words(const CallArgument& argument, Visitor& visitor) {
  return std::visit(detail::VisitWords<Visitor>{visitor}, argument);
}

}  // namespace sinter::frontend
