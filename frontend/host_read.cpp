#include "frontend/host_read.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <cstring>

#include "compiler/ir/print.h"

namespace sinter::frontend {
namespace {

template <class Number>
void append(std::string& bytes, char tag, Number number) {
  static_assert(sizeof(Number) == 8);
  bytes += tag;
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// Reads an outcome's bytes in the order in which they were written.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}

  [[nodiscard]] bool done() const { return rest_.empty(); }
  [[nodiscard]] char tag() const { return rest_.front(); }
  template <class Number>
  Number next() {
    Number number{};
    std::memcpy(&number, rest_.data() + 1, sizeof number);
    rest_.remove_prefix(1 + sizeof number);
    return number;
  }

 private:
  std::string_view rest_;
};

std::string shown_numbers(Cursor& cursor, int64_t count) {
  std::string text = "[";
  for (int64_t i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + std::to_string(cursor.next<int64_t>());
  return text + "]";
}

std::string shown_sizes(Cursor& cursor) {
  const auto rank = cursor.next<int64_t>();
  std::string text = shown_numbers(cursor, rank);
  for (int64_t i = 0; i < rank; ++i) cursor.next<int64_t>();  // strides
  return text;
}

}  // namespace

std::optional<Outcome> Outcome::of(std::span<const c10::IValue> results) {
  Outcome outcome;
  for (const c10::IValue& result : results) {
    if (result.isBool()) {
      append(outcome.bytes_, 'b', static_cast<int64_t>(result.toBool()));
    } else if (result.isInt()) {
      append(outcome.bytes_, 'i', result.toInt());
    } else if (result.isDouble()) {
      append(outcome.bytes_, 'd', result.toDouble());
    } else if (result.isIntList()) {
      append(outcome.bytes_, 'n', static_cast<int64_t>(result.toListRef().size()));
      for (const c10::IValue& number : result.toListRef()) append(outcome.bytes_, 'i', number.toInt());
    } else if (result.isTensor() && result.toTensor().defined()) {
      const at::Tensor& tensor = result.toTensor();
      append(outcome.bytes_, 't', tensor.dim());
      for (const int64_t size : tensor.sizes()) append(outcome.bytes_, 's', size);
      for (const int64_t stride : tensor.strides()) append(outcome.bytes_, 's', stride);
    } else {
      return std::nullopt;
    }
  }
  return outcome;
}

std::string Outcome::text() const {
  std::string text;
  for (Cursor cursor(bytes_); !cursor.done();) {
    if (!text.empty()) text += ", ";
    switch (cursor.tag()) {
      case 'b':
        text += cursor.next<int64_t>() != 0 ? "true" : "false";
        break;
      case 'i':
        text += std::to_string(cursor.next<int64_t>());
        break;
      case 'd':
        text += ir::to_string(ir::Arg{cursor.next<double>()});
        break;
      case 'n':
        text += shown_numbers(cursor, cursor.next<int64_t>());
        break;
      default:
        text += shown_sizes(cursor);
    }
  }
  return text;
}

std::optional<ir::Scalar> Outcome::number() const {
  Cursor cursor(bytes_);
  if (bytes_.size() != 9) return std::nullopt;
  if (cursor.tag() == 'b') return ir::Scalar(cursor.next<int64_t>() != 0);
  if (cursor.tag() == 'i') return ir::Scalar(cursor.next<int64_t>());
  if (cursor.tag() == 'd') return ir::Scalar(cursor.next<double>());
  return std::nullopt;
}

void Outcome::copy_number(char* to) const { std::memcpy(to, bytes_.data() + 1, 8); }

}  // namespace sinter::frontend
