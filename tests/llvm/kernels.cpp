#include "tests/llvm/kernels.h"

#include <utility>

namespace sinter::test {

using ir::DType;
using kernel::Slot;

KernelBuilder::KernelBuilder(std::string name, std::vector<int64_t> extents) {
  kernel_.name = std::move(name);
  kernel_.extents = std::move(extents);
}

Slot KernelBuilder::add(kernel::Instruction instruction) {
  kernel_.body.push_back(std::move(instruction));
  return static_cast<Slot>(kernel_.body.size() - 1);
}

Slot KernelBuilder::input(DType dtype, std::vector<int64_t> strides, int64_t offset) {
  kernel_.params.push_back({.role = kernel::Param::Role::input, .dtype = dtype});
  const auto param = static_cast<uint32_t>(kernel_.params.size() - 1);
  return load(param, {.affine = {.offset = offset, .strides = std::move(strides)}, .terms = {}});
}

Slot KernelBuilder::load(uint32_t param, ir::Index index) {
  return add({.operation = kernel::Load{param, std::move(index)}, .dtype = kernel_.params[param].dtype});
}

Slot KernelBuilder::host_scalar(DType dtype) {
  kernel_.params.push_back({.role = kernel::Param::Role::host_scalar, .dtype = dtype});
  return load(static_cast<uint32_t>(kernel_.params.size() - 1), {});
}

Slot KernelBuilder::number(ir::Scalar value, DType dtype) {
  return add({.operation = kernel::Immediate{value}, .dtype = dtype});
}

Slot KernelBuilder::op(std::string_view name, std::vector<Slot> operands, DType result) {
  return add({.operation = kernel::Compute{ir::op_named(name), std::move(operands)}, .dtype = result});
}

void KernelBuilder::output(DType dtype, Slot value, std::vector<int64_t> strides) {
  kernel_.params.push_back({.role = kernel::Param::Role::output, .dtype = dtype});
  kernel_.stores.push_back({.param = static_cast<uint32_t>(kernel_.params.size() - 1),
                            .index = {.affine = {.offset = 0, .strides = std::move(strides)}, .terms = {}},
                            .value = value});
}

void KernelBuilder::output_in_place(DType dtype, Slot value, std::vector<int64_t> strides) {
  output(dtype, value, std::move(strides));
  kernel_.params.back().in_place = true;
}

std::vector<int64_t> row_major(const std::vector<int64_t>& extents) {
  std::vector<int64_t> strides(extents.size(), 1);
  for (size_t d = extents.size(); d-- > 1;) strides[d - 1] = strides[d] * extents[d];
  return strides;
}

kernel::Kernel gelu(int64_t numel) {
  KernelBuilder b("fused_mul_div_erf_add_mul", {numel});
  const Slot x = b.input(DType::f32, {1});
  const Slot half = b.op("mul", {x, b.number(0.5, DType::f32)}, DType::f32);
  const Slot scaled = b.op("div", {x, b.number(1.41421, DType::f32)}, DType::f32);
  const Slot erf = b.op("erf", {scaled}, DType::f32);
  const Slot sum = b.op("add", {erf, b.number(1.0, DType::f32)}, DType::f32);
  b.output(DType::f32, b.op("mul", {half, sum}, DType::f32), {1});
  return b.kernel();
}

kernel::Kernel add_bias_relu(int64_t rows, int64_t channels, DType dtype) {
  KernelBuilder b("fused_add_relu", {rows, channels});
  const Slot x = b.cast(b.input(dtype, {channels, 1}), DType::f32);
  const Slot bias = b.cast(b.input(dtype, {0, 1}), DType::f32);
  const Slot sum = b.op("add", {x, bias}, DType::f32);
  const Slot relu = b.op("maximum", {sum, b.number(0.0, DType::f32)}, DType::f32);
  b.output(dtype, b.cast(relu, dtype), {channels, 1});
  return b.kernel();
}

kernel::Kernel transposed_add(int64_t rows, int64_t columns) {
  KernelBuilder b("fused_add", {rows, columns});
  const Slot a = b.input(DType::f32, {columns, 1});
  const Slot t = b.input(DType::f32, {1, rows});
  b.output(DType::f32, b.op("add", {a, t}, DType::f32), {columns, 1});
  return b.kernel();
}

}  // namespace sinter::test
