#include "compiler/ir/type.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "compiler/support/errors.h"

namespace sinter::ir {
namespace {

struct DTypeRow {
  std::string_view name;
  int64_t bytes;
};

/// Indexed by DType.
constexpr std::array<DTypeRow, 13> dtype_rows{{
    {"f64", 8},
    {"f32", 4},
    {"f16", 2},
    {"bf16", 2},
    {"i64", 8},
    {"i32", 4},
    {"i16", 2},
    {"i8", 1},
    {"u8", 1},
    {"b8", 1},
    {"c64", 8},
    {"c128", 16},
    {"other", 0},
}};
static_assert(dtype_rows.size() == static_cast<size_t>(DType::other) + 1);

/// Product of two affine expressions; nothing when it would not be affine.
std::optional<Dim> product(const Dim& a, const Dim& b) {
  if (b.is_static()) return a * b.constant();
  if (a.is_static()) return b * a.constant();
  return std::nullopt;
}

/// A dim of size 0 takes no part in the strides of the others, as in ATen.
const Dim& stride_factor(const Dim& size) {
  static const Dim one(1);
  return size == Dim(0) ? one : size;
}

std::optional<std::vector<Dim>> try_contiguous_strides(const std::vector<Dim>& sizes) {
  std::vector<Dim> strides(sizes.size(), Dim(1));
  for (size_t d = sizes.size(); d-- > 1;) {
    auto next = product(strides[d], stride_factor(sizes[d]));
    if (!next) return std::nullopt;
    strides[d - 1] = *std::move(next);
  }
  return strides;
}

bool is_empty(const std::vector<Dim>& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](const Dim& size) { return size == Dim(0); });
}

std::vector<int64_t> numbers(const std::vector<Dim>& dims) {
  std::vector<int64_t> result;
  result.reserve(dims.size());
  for (const Dim& dim : dims) result.push_back(dim.value());
  return result;
}

std::string join(const std::vector<Dim>& dims) {
  std::string text;
  for (const Dim& dim : dims) {
    if (!text.empty()) text += ',';
    text += to_string(dim);
  }
  return text;
}

/// Calls `visit(place)` for every element, in row-major order; places count from the first element.
template <class Visit>
void for_each_place(const Type& type, Visit visit) {
  const auto sizes = type.static_sizes();
  const auto strides = type.static_strides();
  std::vector<int64_t> index(sizes.size(), 0);
  int64_t place = 0;
  for (int64_t left = type.numel(); left > 0; --left) {
    visit(place);
    for (size_t d = sizes.size(); d-- > 0;) {
      place += strides[d];
      if (++index[d] < sizes[d]) break;
      place -= sizes[d] * strides[d];
      index[d] = 0;
    }
  }
}

}  // namespace

std::string_view name(DType dtype) { return dtype_rows[static_cast<size_t>(dtype)].name; }

std::optional<DType> parse_dtype(std::string_view text) {
  for (size_t i = 0; i < dtype_rows.size(); ++i) {
    if (dtype_rows[i].name == text) return static_cast<DType>(i);
  }
  return std::nullopt;
}

int64_t bytes_of(DType dtype) { return dtype_rows[static_cast<size_t>(dtype)].bytes; }

std::string to_string(Device device) {
  switch (device.kind) {
    case Device::Kind::cpu:
      return "cpu";
    case Device::Kind::cuda:
      return fmt::format("cuda:{}", device.index);
    case Device::Kind::other:
      return fmt::format("other:{}", device.index);
  }
  return "other:0";
}

Dim Dim::symbol(SymbolId id) {
  Dim dim;
  dim.terms_.emplace_back(id, 1);
  return dim;
}

int64_t Dim::value() const {
  if (!is_static())
    throw InternalError("ir", fmt::format("size '{}' is symbolic where a number is needed", to_string(*this)));
  return constant_;
}

Dim Dim::operator+(const Dim& other) const {
  Dim sum(constant_ + other.constant_);
  auto left = terms_.begin();
  auto right = other.terms_.begin();
  while (left != terms_.end() || right != other.terms_.end()) {
    const bool take_left = right == other.terms_.end() || (left != terms_.end() && left->first <= right->first);
    const bool take_right = left == terms_.end() || (right != other.terms_.end() && right->first <= left->first);
    const SymbolId symbol = take_left ? left->first : right->first;
    int64_t coefficient = 0;
    if (take_left) coefficient += (left++)->second;
    if (take_right) coefficient += (right++)->second;
    if (coefficient != 0) sum.terms_.emplace_back(symbol, coefficient);
  }
  return sum;
}

Dim Dim::operator-(const Dim& other) const { return *this + other * -1; }

Dim Dim::operator*(int64_t factor) const {
  Dim scaled(constant_ * factor);
  if (factor == 0) return scaled;
  scaled.terms_ = terms_;
  for (auto& term : scaled.terms_) term.second *= factor;
  return scaled;
}

std::string to_string(const Dim& dim) {
  std::string text;
  for (const auto& [symbol, coefficient] : dim.terms()) {
    if (coefficient >= 0 && !text.empty()) text += '+';
    if (coefficient == -1) text += '-';
    if (coefficient != 1 && coefficient != -1) text += fmt::format("{}*", coefficient);
    text += fmt::format("s{}", symbol.index);
  }
  if (text.empty()) return fmt::format("{}", dim.constant());
  if (dim.constant() != 0) text += fmt::format("{:+}", dim.constant());
  return text;
}

bool Type::is_static() const {
  const auto fixed = [](const Dim& dim) { return dim.is_static(); };
  return std::all_of(sizes.begin(), sizes.end(), fixed) && std::all_of(strides.begin(), strides.end(), fixed);
}

int64_t Type::numel() const {
  int64_t count = 1;
  for (const Dim& size : sizes) count *= size.value();
  return count;
}

std::vector<int64_t> Type::static_sizes() const { return numbers(sizes); }
std::vector<int64_t> Type::static_strides() const { return numbers(strides); }

bool Type::is_contiguous() const {
  if (is_empty(sizes)) return true;
  std::optional<Dim> expected = Dim(1);
  for (size_t d = rank(); d-- > 0;) {
    if (sizes[d] == Dim(1)) continue;
    if (!expected || strides[d] != *expected) return false;
    expected = product(*expected, sizes[d]);
  }
  return true;
}

bool Type::is_dense() const {
  if (!is_static()) return is_contiguous();
  if (is_empty(sizes)) return true;
  std::vector<size_t> by_stride;
  for (size_t d = 0; d < rank(); ++d) {
    if (sizes[d] != Dim(1)) by_stride.push_back(d);
  }
  std::sort(by_stride.begin(), by_stride.end(),
            [&](size_t a, size_t b) { return strides[a].constant() < strides[b].constant(); });
  int64_t expected = 1;
  for (size_t d : by_stride) {
    if (strides[d].constant() != expected) return false;
    expected *= sizes[d].constant();
  }
  return true;
}

int64_t Type::span() const {
  if (is_empty(sizes)) return 0;
  int64_t last = 0;
  for (size_t d = 0; d < rank(); ++d) last += (sizes[d].value() - 1) * strides[d].value();
  return last + 1;
}

bool lies_in_elements_of(const Type& base, const Type& view, int64_t offset) {
  if (view.numel() == 0) return true;
  if (offset < 0 || offset + view.span() > base.span()) return false;
  if (base.is_dense()) return true;
  std::vector<bool> is_element(static_cast<size_t>(base.span()));
  for_each_place(base, [&](int64_t place) { is_element[static_cast<size_t>(place)] = true; });
  bool inside = true;
  for_each_place(view, [&](int64_t place) { inside = inside && is_element[static_cast<size_t>(offset + place)]; });
  return inside;
}

bool same_layout(const Type& a, const Type& b) {
  for (size_t dim = 0; dim < a.rank(); ++dim) {
    if (!(a.sizes[dim] == Dim(1)) && !(a.strides[dim] == b.strides[dim])) return false;
  }
  return true;
}

Type dense_like(const Type& like, std::vector<Dim> sizes) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order,
                           [&](size_t a, size_t b) { return like.strides[a].constant() > like.strides[b].constant(); });
  Type type{like.dtype, std::move(sizes), like.strides, like.device};
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    type.strides[order[i]] = step;
    step *= type.sizes[order[i]].value();
  }
  return type;
}

std::vector<Dim> contiguous_strides(const std::vector<Dim>& sizes) {
  auto strides = try_contiguous_strides(sizes);
  if (!strides) throw InternalError("ir", fmt::format("row-major strides of [{}] are not affine", join(sizes)));
  return *std::move(strides);
}

Type contiguous(DType dtype, std::vector<Dim> sizes, Device device) {
  std::vector<Dim> strides = contiguous_strides(sizes);
  return {dtype, std::move(sizes), std::move(strides), device};
}

std::string to_string(const Type& type, Device home) {
  std::string text = fmt::format("{}[{}]", name(type.dtype), join(type.sizes));
  if (try_contiguous_strides(type.sizes) != type.strides) text += fmt::format("{{{}}}", join(type.strides));
  if (type.device != home) text += "@" + to_string(type.device);
  return text;
}

}  // namespace sinter::ir
