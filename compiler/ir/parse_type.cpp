#include "compiler/ir/parse_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "compiler/ir/parse.h"

namespace sinter::ir {
namespace {

constexpr std::string_view type_example = "f16[8,768]";
/// Sizes, strides and coefficients in text; keeps arithmetic on parsed types far from overflow.
constexpr int64_t number_limit = int64_t{1} << 48;
constexpr double element_limit = 4e18;
constexpr size_t rank_limit = 64;

Dim read_symbol(TextCursor& cursor) {
  const size_t start = cursor.mark();
  const std::string word = cursor.word("a size", type_example);
  const bool known = word[0] == 's' && word.size() > 1 && word.size() < 9 &&
                     word.find_first_not_of("0123456789", 1) == std::string::npos;
  if (!known) cursor.fail_at(start, fmt::format("expected a size, found '{}'. Example: s0", word));
  return Dim::symbol({static_cast<uint32_t>(std::stoul(word.substr(1)))});
}

/// `s0`, `2*s0` or `3`.
Dim read_term(TextCursor& cursor) {
  const size_t start = cursor.mark();
  const std::string_view number = cursor.number_text();
  if (number.empty()) return read_symbol(cursor);
  int64_t value = 0;
  for (char c : number) {
    if (c < '0' || c > '9') {
      cursor.fail_at(start, fmt::format("expected a size, found '{}'. Example: {}", number, type_example));
    }
    value = value * 10 + (c - '0');
    if (value > number_limit) cursor.fail_at(start, fmt::format("a size or stride may be at most {}", number_limit));
  }
  return cursor.accept("*") ? read_symbol(cursor) * value : Dim(value);
}

/// Bound on the numbers in a dim.
int64_t magnitude(const Dim& dim) {
  int64_t largest = std::abs(dim.constant());
  for (const auto& [symbol, coefficient] : dim.terms()) largest = std::max(largest, std::abs(coefficient));
  return largest;
}

Dim read_dim(TextCursor& cursor) {
  const size_t start = cursor.mark();
  Dim dim = cursor.accept("-") ? read_term(cursor) * -1 : read_term(cursor);
  while (cursor.at("+") || cursor.at("-")) {
    if (cursor.accept("+")) {
      dim = dim + read_term(cursor);
    } else if (cursor.accept("-")) {
      dim = dim - read_term(cursor);
    }
    if (magnitude(dim) > number_limit) cursor.fail_at(start, "the size or stride is too large");
  }
  return dim;
}

std::vector<Dim> read_dims(TextCursor& cursor, std::string_view close) {
  std::vector<Dim> dims;
  if (cursor.accept(close)) return dims;
  do {
    const size_t start = cursor.mark();
    dims.push_back(read_dim(cursor));
    if (dims.size() > rank_limit) cursor.fail_at(start, fmt::format("a tensor has at most {} dims", rank_limit));
    if (dims.back().is_static() && dims.back().constant() < 0) {
      cursor.fail_at(start, fmt::format("sizes and strides may not be negative, found {}", dims.back().constant()));
    }
  } while (cursor.accept(","));
  if (!cursor.accept(close)) cursor.fail(fmt::format("',' or '{}'", close), type_example);
  return dims;
}

/// Refuses types whose element count or storage span would overflow.
void check_extent(const TextCursor& cursor, size_t start, const Type& type) {
  double elements = 1;
  double span = 1;
  for (size_t d = 0; d < type.rank(); ++d) {
    const double size = std::max(1.0, static_cast<double>(magnitude(type.sizes[d])));
    elements *= size;
    if (d < type.strides.size()) span += (size - 1) * static_cast<double>(magnitude(type.strides[d]));
  }
  if (elements > element_limit || span > element_limit) cursor.fail_at(start, "the tensor is too large");
}

std::vector<Dim> row_major(const TextCursor& cursor, size_t start, const std::vector<Dim>& sizes) {
  size_t symbolic = 0;
  for (size_t d = 1; d < sizes.size(); ++d) symbolic += sizes[d].is_static() ? 0 : 1;
  if (symbolic > 1)
    cursor.fail_at(start, "strides must be given when two sizes are symbolic. Example: f16[2,s0,s1]{4096,64,1}");
  return contiguous_strides(sizes);
}

}  // namespace

DType read_dtype(TextCursor& cursor) {
  const size_t start = cursor.mark();
  const std::string word = cursor.word("a type", type_example);
  const auto dtype = parse_dtype(word);
  if (!dtype) {
    cursor.fail_at(start, fmt::format("expected a type, found '{}'. The element types are f64 f32 f16 bf16 i64 i32 i16 "
                                      "i8 u8 b8 c64 c128 other. Example: {}",
                                      word, type_example));
  }
  return *dtype;
}

Device read_device(TextCursor& cursor) {
  constexpr std::string_view example = "cuda:0";
  const size_t start = cursor.mark();
  const std::string kind = cursor.word("a device", example);
  if (kind == "cpu") return {};
  if (kind != "cuda" && kind != "other") {
    cursor.fail_at(start, fmt::format("expected a device (cpu, cuda:N or other:N), found '{}'", kind));
  }
  cursor.expect(":", example);
  const size_t number = cursor.mark();
  const int64_t index = cursor.integer("a device's number", example);
  if (index < std::numeric_limits<int8_t>::min() || index > std::numeric_limits<int8_t>::max()) {
    cursor.fail_at(number, fmt::format("there is no device {}", index));
  }
  return {kind == "cuda" ? Device::Kind::cuda : Device::Kind::other, static_cast<int8_t>(index)};
}

Type read_type(TextCursor& cursor, Device home) {
  const size_t start = cursor.mark();
  Type type;
  type.dtype = read_dtype(cursor);
  cursor.expect("[", type_example);
  type.sizes = read_dims(cursor, "]");
  check_extent(cursor, start, type);
  // A fused node's body also opens with a brace, but after a space: strides follow the bracket directly.
  if (cursor.accept_adjacent("{")) {
    type.strides = read_dims(cursor, "}");
    if (type.strides.size() != type.sizes.size()) {
      cursor.fail_at(start, fmt::format("{} sizes but {} strides", type.sizes.size(), type.strides.size()));
    }
  } else {
    type.strides = row_major(cursor, start, type.sizes);
  }
  check_extent(cursor, start, type);
  type.device = cursor.accept_adjacent("@") ? read_device(cursor) : home;
  return type;
}

Type parse_type(std::string_view text, Device home, std::string_view origin) {
  TextCursor cursor(text, origin);
  Type type = read_type(cursor, home);
  if (!cursor.at_end()) cursor.fail("the end of the type", type_example);
  return type;
}

}  // namespace sinter::ir
