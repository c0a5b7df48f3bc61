#include "tests/llvm/memory.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <variant>

#include "compiler/ir/reference.h"

namespace sinter::test {

using ir::DType;
using ir::RefValue;

namespace {

template <class T>
T read(const std::vector<unsigned char>& bytes, int64_t element) {
  T value;
  std::memcpy(&value, bytes.data() + static_cast<size_t>(element) * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void write(std::vector<unsigned char>& bytes, int64_t element, T value) {
  std::memcpy(bytes.data() + static_cast<size_t>(element) * sizeof(T), &value, sizeof(T));
}

/// IEEE half by GCC's own conversions.
double half_to_double(uint16_t bits) { return static_cast<double>(std::bit_cast<_Float16>(bits)); }
uint16_t half_bits(double value) { return std::bit_cast<uint16_t>(static_cast<_Float16>(value)); }

double bf16_to_double(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
uint16_t bf16_bits(double value) {  // `value` is a bf16 already: the lower half of its f32 is zero, or it is NaN
  const float single = static_cast<float>(value);
  return static_cast<uint16_t>((std::bit_cast<uint32_t>(single) >> 16) | (single != single ? 0x40 : 0));
}

std::vector<RefValue> gather(const std::vector<RefValue>& values, const std::vector<kernel::Slot>& slots) {
  std::vector<RefValue> gathered;
  for (const kernel::Slot slot : slots) gathered.push_back(values[slot]);
  return gathered;
}

/// A value as an instruction of the dtype holds it.
RefValue settle(const RefValue& value, DType dtype) {
  const RefValue converted = ir::ref::convert(value, dtype);
  if (!ir::is_float(dtype)) return converted;
  return ir::ref::round_to(ir::ref::real(converted), dtype);
}

RefValue scalar_value(const ir::Scalar& scalar) {
  if (const auto* real = std::get_if<double>(&scalar)) return *real;
  if (const auto* integer = std::get_if<int64_t>(&scalar)) return *integer;
  return static_cast<int64_t>(std::get<bool>(scalar));
}

RefValue compute(const kernel::Kernel& kernel, const kernel::Compute& compute, DType result,
                 const std::vector<RefValue>& values) {
  const ir::OpRow& row = ir::row(compute.op);
  const bool is_cast = row.rule == ir::TypeRule::cast;
  const DType computation = is_cast ? result : kernel.body[compute.operands.back()].dtype;
  return settle(row.native().reference(gather(values, compute.operands), computation), result);
}

void run_point(const kernel::Kernel& kernel, std::vector<Buffer>& params, const std::vector<int64_t>& point) {
  std::vector<RefValue> values;
  for (const kernel::Instruction& instruction : kernel.body) {
    if (const auto* load = std::get_if<kernel::Load>(&instruction.operation)) {
      const bool host = kernel.params[load->param].role == kernel::Param::Role::host_scalar;
      values.push_back(params[load->param].get(host ? 0 : ir::evaluate(load->index, point)));
    } else if (const auto* immediate = std::get_if<kernel::Immediate>(&instruction.operation)) {
      values.push_back(settle(scalar_value(immediate->value), instruction.dtype));
    } else {
      values.push_back(compute(kernel, std::get<kernel::Compute>(instruction.operation), instruction.dtype, values));
    }
  }
  for (const kernel::Store& store : kernel.stores) {
    const DType dtype = params[store.param].dtype();
    params[store.param].set(ir::evaluate(store.index, point), settle(values[store.value], dtype));
  }
}

/// Calls `visit(point)` for every point of the nest, in row-major order.
template <class Visit>
void for_each_point(const std::vector<int64_t>& extents, Visit&& visit) {
  if (std::ranges::find(extents, 0) != extents.end()) return;
  std::vector<int64_t> point(extents.size(), 0);
  while (true) {
    visit(point);
    size_t d = extents.size();
    while (d > 0 && ++point[d - 1] == extents[d - 1]) point[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace

Buffer::Buffer(DType dtype, int64_t elements)
    : dtype_(dtype), bytes_(static_cast<size_t>(elements * ir::bytes_of(dtype))) {}

int64_t Buffer::size() const { return static_cast<int64_t>(bytes_.size()) / ir::bytes_of(dtype_); }

RefValue Buffer::get(int64_t element) const {
  switch (dtype_) {
    case DType::f64:
      return read<double>(bytes_, element);
    case DType::f32:
      return static_cast<double>(read<float>(bytes_, element));
    case DType::f16:
      return half_to_double(read<uint16_t>(bytes_, element));
    case DType::bf16:
      return bf16_to_double(read<uint16_t>(bytes_, element));
    case DType::i64:
      return read<int64_t>(bytes_, element);
    case DType::i32:
      return static_cast<int64_t>(read<int32_t>(bytes_, element));
    case DType::i16:
      return static_cast<int64_t>(read<int16_t>(bytes_, element));
    case DType::i8:
      return static_cast<int64_t>(read<int8_t>(bytes_, element));
    default:
      return static_cast<int64_t>(read<uint8_t>(bytes_, element));
  }
}

void Buffer::set(int64_t element, const RefValue& value) {
  const RefValue settled = settle(value, dtype_);
  if (const auto* real = std::get_if<double>(&settled)) {
    switch (dtype_) {
      case DType::f64:
        return write(bytes_, element, *real);
      case DType::f32:
        return write(bytes_, element, static_cast<float>(*real));
      case DType::f16:
        return write(bytes_, element, half_bits(*real));
      default:
        return write(bytes_, element, bf16_bits(*real));
    }
  }
  const int64_t integer = std::get<int64_t>(settled);
  switch (ir::bytes_of(dtype_)) {
    case 8:
      return write(bytes_, element, integer);
    case 4:
      return write(bytes_, element, static_cast<int32_t>(integer));
    case 2:
      return write(bytes_, element, static_cast<int16_t>(integer));
    default:
      return write(bytes_, element, static_cast<int8_t>(integer));
  }
}

std::vector<int64_t> param_sizes(const kernel::Kernel& kernel) {
  std::vector<int64_t> sizes(kernel.params.size(), 1);
  for_each_point(kernel.extents, [&](const std::vector<int64_t>& point) {
    const auto touch = [&](uint32_t param, const ir::Index& index) {
      if (kernel.params[param].role == kernel::Param::Role::host_scalar) return;
      sizes[param] = std::max(sizes[param], ir::evaluate(index, point) + 1);
    };
    for (const kernel::Instruction& instruction : kernel.body) {
      if (const auto* load = std::get_if<kernel::Load>(&instruction.operation)) touch(load->param, load->index);
    }
    for (const kernel::Store& store : kernel.stores) touch(store.param, store.index);
  });
  return sizes;
}

void run_reference(const kernel::Kernel& kernel, std::vector<Buffer>& params) {
  for_each_point(kernel.extents, [&](const std::vector<int64_t>& point) { run_point(kernel, params, point); });
}

}  // namespace sinter::test
