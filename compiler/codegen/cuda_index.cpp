#include "compiler/codegen/cuda_index.h"

#include <fmt/format.h>

namespace sinter::codegen {
namespace {

void add(std::string& sum, const std::string& term) {
  if (!sum.empty()) sum += " + ";
  sum += term;
}

}  // namespace

std::string IndexText::literal(int64_t value) const {
  return wide_ ? fmt::format("{}ull", static_cast<uint64_t>(value)) : fmt::format("{}u", static_cast<uint32_t>(value));
}

std::string IndexText::number(int64_t value) const {
  const auto parameter = sizes_.parameter(value);
  return parameter ? fmt::format("n{}", *parameter) : literal(value);
}

std::string IndexText::count(int64_t value) const {
  const auto parameter = sizes_.count(value);
  return parameter ? fmt::format("n{}", *parameter) : literal(value);
}

std::string IndexText::sum(const ir::Affine& affine, const std::vector<std::string>& dims) const {
  std::string text;
  for (size_t d = 0; d < affine.strides.size(); ++d) {
    if (affine.strides[d] == 0) continue;
    add(text, affine.strides[d] == 1 ? dims[d] : fmt::format("{} * {}", dims[d], number(affine.strides[d])));
  }
  return text;
}

std::string IndexText::at(const ir::Index& index, const std::vector<std::string>& dims) const {
  std::string text = sum(index.affine, dims);
  for (const auto& term : index.terms) {
    std::string inner = sum(term.inner, dims);
    if (term.inner.offset != 0 || inner.empty()) add(inner, number(term.inner.offset));
    std::string part = fmt::format("({})", inner);
    if (term.divisor != 1) part += " / " + number(term.divisor);
    if (term.modulus != 0) part += " % " + number(term.modulus);
    if (term.scale != 1) part += " * " + number(term.scale);
    add(text, part);
  }
  if (index.affine.offset != 0 || text.empty()) add(text, number(index.affine.offset));
  return text;
}

std::vector<std::string> IndexText::tiled_dims_of(const std::string& vector, std::span<const int64_t> extents,
                                                  int64_t width, const Tile& tile) const {
  // Digits of the vector's number, lowest first: rows, vectors, groups of rows, then the loops with what is left.
  int64_t below = 1;
  const auto digit = [&](int64_t base) {
    const std::string text = below == 1 ? vector : fmt::format("{} / {}", vector, number(below));
    below *= base;
    return fmt::format("{} % {}", text, count(base));
  };
  const std::string row = digit(tile.rows);
  const std::string column = digit(tile.vectors);
  const std::string group = digit(tile.groups);
  std::vector<std::string> dims(extents.size());
  for (size_t d = extents.size(); d-- > 0;) {
    const bool inner = d + 1 == extents.size();
    const int64_t step = inner ? tile.vectors : d == tile.dim ? tile.rows * tile.groups : 1;
    const std::string rest = digit(extents[d] / (inner ? width : 1) / step);
    if (inner) {
      dims[d] = fmt::format("({} * {} + {}) * {}", rest, count(step), column, literal(width));
    } else if (d == tile.dim) {
      dims[d] = fmt::format("{} * {} + {} * {} + {}", rest, count(step), group, count(tile.rows), row);
    } else {
      dims[d] = rest;
    }
  }
  return dims;
}

std::vector<std::string> IndexText::dims_of(const std::string& point, std::span<const int64_t> extents) const {
  std::vector<std::string> dims(extents.size());
  int64_t inside = 1;
  for (size_t d = extents.size(); d-- > 0;) {
    std::string text = inside == 1 ? point : fmt::format("{} / {}", point, number(inside));
    if (d != 0) text += fmt::format(" % {}", number(extents[d]));
    dims[d] = text;
    inside *= extents[d];
  }
  return dims;
}

}  // namespace sinter::codegen
