#include "operands.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <limits>

namespace sinter::test {
namespace {

template <class T>
std::vector<double> floats_of() {
  using Limits = std::numeric_limits<T>;
  std::vector<double> values{0.0, -0.0, 1, -1, Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()};
  for (const T limit : {Limits::denorm_min(), Limits::min(), Limits::max(), Limits::epsilon()}) {
    values.push_back(static_cast<double>(limit));
    values.push_back(-static_cast<double>(limit));
  }
  for (const double value : {0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 0.3, -0.7, 0.99, 3.0, -3.0, 7.25, -11.0, 20.5, 100.0})
    values.push_back(value);
  return values;
}

template <class T>
std::vector<int64_t> integers_of() {
  using Limits = std::numeric_limits<T>;
  std::vector<int64_t> values{0, 1, 2, 3, 5, 7, 8, 15, 31, 63, 64, 100, Limits::max(), Limits::max() - 1};
  if (std::is_signed_v<T>) {
    for (const int64_t value : {int64_t{-1}, int64_t{-2}, int64_t{-7}, int64_t{-100}, int64_t{Limits::min()}})
      values.push_back(value);
  }
  return values;
}

template <class T>
at::Tensor tensor_of(const std::vector<T>& values, at::ScalarType dtype) {
  return at::tensor(values, at::TensorOptions(c10::CppTypeToScalarType<T>::value)).to(dtype);
}

at::Tensor specials(at::ScalarType dtype) {
  if (at::isFloatingType(dtype)) return tensor_of(special_floats(dtype), dtype);
  return tensor_of(special_integers(dtype), dtype);
}

/// Numbers whose differences, sums and logarithms cancel: steps of the dtype and larger ones beside a few centres.
at::Tensor close_values(at::ScalarType dtype) {
  std::vector<double> values;
  for (const double centre : {1e4, 100.0, 1.0, 0.5, 1e-3, -1.0}) {
    for (const double step : {0.0, 3e-7, -2e-4, 0.013, -0.11}) values.push_back(centre * (1 + step));
  }
  return tensor_of(values, dtype);
}

at::Tensor divisors(at::ScalarType dtype) {
  if (at::isFloatingType(dtype) || dtype == at::kBool) return specials(dtype);
  auto values = special_integers(dtype);
  for (auto& value : values) {
    if (value == 0 || value == -1) value = 11;
  }
  return tensor_of(values, dtype);
}

at::Tensor shifts(at::ScalarType dtype) { return specials(dtype); }

at::Tensor small_values(at::ScalarType dtype, int64_t count) {
  const auto values = at::arange(count, at::TensorOptions(at::kDouble));
  return (at::isFloatingType(dtype) ? values.mul(0.37) : values).to(dtype);
}

/// A column or row of values, as the layout wants it for a grid of all pairs.
at::Tensor laid_out(const at::Tensor& values, bool along_rows, Layout layout) {
  const int64_t count = values.size(0);
  const auto line = along_rows ? values.view({count, 1}) : values.view({1, count});
  switch (layout) {
    case Layout::contiguous:
    case Layout::cancelling:
      return line.expand({count, count}).contiguous();
    case Layout::transposed:
      return along_rows ? line.expand({count, count}).t().contiguous().t() : line.expand({count, count}).contiguous();
    case Layout::broadcast:
      return along_rows ? line : line.expand({count, count});
    case Layout::zero_dim:
      return values[count - (along_rows ? 1 : 2)].clone();
    case Layout::empty:
      return at::empty({0, 3}, values.options());
  }
  return {};
}

at::ScalarType another_kind(at::ScalarType dtype) {
  if (dtype == at::kFloat) return at::kLong;
  if (at::isFloatingType(dtype)) return at::kFloat;
  return dtype == at::kInt ? at::kHalf : dtype == at::kByte ? at::kChar : at::kInt;
}

}  // namespace

std::string name(Layout layout) {
  constexpr std::array names{"contiguous", "cancelling", "transposed", "broadcast", "zero_dim", "empty"};
  return names[static_cast<size_t>(layout)];
}

std::vector<double> special_floats(at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf:
      return floats_of<c10::Half>();
    case at::kBFloat16:
      return floats_of<c10::BFloat16>();
    case at::kFloat:
      return floats_of<float>();
    default:
      return floats_of<double>();
  }
}

std::vector<int64_t> special_integers(at::ScalarType dtype) {
  switch (dtype) {
    case at::kBool:
      return {0, 1};
    case at::kByte:
      return integers_of<uint8_t>();
    case at::kChar:
      return integers_of<int8_t>();
    case at::kShort:
      return integers_of<int16_t>();
    case at::kInt:
      return integers_of<int32_t>();
    default:
      return integers_of<int64_t>();
  }
}

std::vector<at::Tensor> operands(at::ScalarType dtype, Layout layout, c10::Device device) {
  const bool cancels = layout == Layout::cancelling && at::isFloatingType(dtype);
  const auto values = cancels ? close_values(dtype) : specials(dtype);
  const int64_t count = values.size(0);
  auto other = divisors(another_kind(dtype));
  while (other.size(0) < count) other = other.repeat({2});
  other = other.slice(0, 0, count);
  const auto mask = at::arange(count).remainder(3).eq(0);
  std::vector<at::Tensor> all{
      laid_out(values, true, layout),
      laid_out(values, false, layout),
      laid_out(values.flip(0), true, layout),
      laid_out(cancels ? values : divisors(dtype), false, layout),
      laid_out(cancels ? values : shifts(dtype), false, layout),
      laid_out(small_values(dtype, count), true, layout),
      laid_out(mask, false, layout),
      values[count - 1].clone(),
      laid_out(other, false, layout),
  };
  for (auto& tensor : all) {
    if (device.type() != at::kCPU) tensor = tensor.to(device);
  }
  return all;
}

}  // namespace sinter::test
