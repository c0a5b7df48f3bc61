#include "bench/measure/inputs.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "compiler/support/errors.h"

namespace sinter::bench {
namespace {

c10::ScalarType scalar_type(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::f64:
      return c10::ScalarType::Double;
    case ir::DType::f16:
      return c10::ScalarType::Half;
    case ir::DType::bf16:
      return c10::ScalarType::BFloat16;
    case ir::DType::i64:
      return c10::ScalarType::Long;
    case ir::DType::i32:
      return c10::ScalarType::Int;
    case ir::DType::i16:
      return c10::ScalarType::Short;
    case ir::DType::i8:
      return c10::ScalarType::Char;
    case ir::DType::u8:
      return c10::ScalarType::Byte;
    case ir::DType::b8:
      return c10::ScalarType::Bool;
    default:
      return c10::ScalarType::Float;
  }
}

/// Reads one input specification left to right; every failure names the column it stands at.
class Reader {
 public:
  Reader(std::string_view text, size_t position) : text_(text), position_(position) {}

  InputSpec read() {
    InputSpec spec;
    const size_t bracket = text_.find('[');
    const auto dtype = ir::parse_dtype(text_.substr(0, bracket));
    if (!dtype || !ir::is_kernel_dtype(*dtype))
      fail("does not begin with a dtype (f32, f16, bf16, f64, i64, i32, ...)");
    if (bracket == std::string_view::npos) {
      column_ = text_.size();
      fail("has no shape");
    }
    spec.dtype = *dtype;
    column_ = bracket + 1;
    while (!take(']')) {
      if (!spec.sizes.empty() && !take(',')) fail(at_end() ? "ends inside a shape" : "needs ',' or ']' in the shape");
      spec.sizes.push_back(number("a size"));
    }
    if (take('<')) spec.below = std::max<int64_t>(1, number("an upper bound"));
    if (!at_end()) fail("has text after the shape");
    return spec;
  }

 private:
  [[nodiscard]] bool at_end() const { return column_ >= text_.size(); }

  bool take(char wanted) {
    if (at_end() || text_[column_] != wanted) return false;
    ++column_;
    return true;
  }

  int64_t number(const std::string& what) {
    if (at_end()) fail("ends inside a shape");
    int64_t value = 0;
    const char* first = text_.data() + column_;
    const auto result = std::from_chars(first, text_.data() + text_.size(), value);
    if (result.ec != std::errc() || value < 0) fail("has no number where " + what + " belongs");
    column_ += static_cast<size_t>(result.ptr - first);
    return value;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw UserError(
        fmt::format("input {}: '{}' {} (column {}). Example: f16[1,3,224,224]", position_, text_, what, column_ + 1));
  }

  std::string_view text_;
  size_t position_;
  size_t column_ = 0;
};

}  // namespace

InputSpec parse_input(std::string_view text, size_t position) { return Reader(text, position).read(); }

std::string to_string(const InputSpec& spec) {
  return fmt::format("{}[{}]", ir::name(spec.dtype), fmt::join(spec.sizes, ","));
}

at::Tensor draw(const InputSpec& spec, at::Device device) {
  const c10::ScalarType type = scalar_type(spec.dtype);
  if (ir::is_float(spec.dtype)) return at::randn(spec.sizes, at::kFloat).to(device, type);
  return at::randint(spec.below, spec.sizes, at::kLong).to(device, type);
}

std::vector<std::vector<at::Tensor>> rotated_inputs(const std::vector<at::Tensor>& first, int64_t cache_bytes) {
  int64_t bytes = 0;
  for (const at::Tensor& tensor : first) bytes += static_cast<int64_t>(tensor.nbytes());
  constexpr int64_t most_sets = 4096;
  const int64_t sets = std::clamp<int64_t>(2 * cache_bytes / std::max<int64_t>(bytes, 1) + 1, 1, most_sets);
  std::vector<std::vector<at::Tensor>> rotated{first};
  while (static_cast<int64_t>(rotated.size()) < sets) {
    std::vector<at::Tensor> copy;
    for (const at::Tensor& tensor : first) copy.push_back(tensor.clone());
    rotated.push_back(std::move(copy));
  }
  return rotated;
}

}  // namespace sinter::bench
