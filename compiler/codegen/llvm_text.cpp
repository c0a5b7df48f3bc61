#include "compiler/codegen/llvm_text.h"

#include <algorithm>
#include <variant>

#include "compiler/codegen/llvm_access.h"
#include "compiler/codegen/llvm_nest.h"
#include "compiler/codegen/llvm_ops.h"

namespace sinter::codegen {

using ir::DType;
using kernel::Compute;
using kernel::Kernel;
using kernel::Slot;

namespace {

/// Dtype in which an op computes: that of its operands (of the values chosen between, for a select).
DType compute_dtype(const Kernel& kernel, const Compute& compute) { return kernel.body[compute.operands.back()].dtype; }

bool is_cast(const Compute& compute) { return ir::row(compute.op).rule == ir::TypeRule::cast; }

bool calls(const Kernel& kernel, Slot slot, DType dtype) {
  const auto* compute = std::get_if<Compute>(&kernel.body[slot].operation);
  return compute && !is_cast(*compute) && compute_dtype(kernel, *compute) == dtype &&
         is_call(ir::row(compute->op), dtype);
}

}  // namespace

bool reads_neighbours(const Kernel& kernel) {
  if (kernel.extents.empty()) return true;
  const auto along = [&](const ir::Index& index) {
    const int64_t stride = stride_of(index.affine, kernel.extents.size() - 1);
    return index.is_affine() && (stride == 0 || stride == 1);
  };
  return std::ranges::all_of(kernel.stores, along, &kernel::Store::index) &&
         std::ranges::all_of(kernel.body, [&](const kernel::Instruction& instruction) {
           const auto* load = std::get_if<kernel::Load>(&instruction.operation);
           return load == nullptr || along(load->index);
         });
}

int64_t choose_lanes(const Kernel& kernel, int vector_bits, bool neighbours) {
  int64_t bytes = 1;
  for (Slot slot = 0; slot < kernel.body.size(); ++slot) {
    if (calls(kernel, slot, DType::f32)) return vector_bits / 32;
    bytes = std::max(bytes, ir::bytes_of(kernel.body[slot].dtype));
  }
  for (const kernel::Param& param : kernel.params) bytes = std::max(bytes, ir::bytes_of(param.dtype));
  const int64_t lanes = vector_bits / (8 * bytes);
  return neighbours ? lanes : std::min<int64_t>(lanes, 16);
}

bool is_call(const Kernel& kernel, Slot slot) {
  return calls(kernel, slot, DType::f32) || calls(kernel, slot, DType::f64);
}

std::string first_lanes(int64_t count, int64_t lanes) {
  std::string mask = "<";
  for (int64_t lane = 0; lane < lanes; ++lane) mask += fmt::format("{}i1 {}", lane == 0 ? "" : ", ", lane < count);
  return mask + ">";
}

LlvmText::LlvmText(const Kernel& kernel, int vector_bits, int64_t lanes, VectorMath math)
    : kernel_(kernel), vector_bits_(vector_bits), lanes_(lanes), math_(math), out_(Sizes(kernel.generic_sizes)) {}

void LlvmText::load_params() {
  for (size_t p = 0; p < kernel_.params.size(); ++p) {
    const std::string slot = out_.value("getelementptr ptr, ptr %params, i64 {}", p);
    out_.line("%p{} = load ptr, ptr {}, align 8", p, slot);
    pointers_.push_back(fmt::format("%p{}", p));
  }
}

std::vector<std::string> LlvmText::split_index(const std::string& number, std::span<const int64_t> extents) {
  std::vector<std::string> indices(extents.size());
  if (indices.empty()) return indices;
  std::string rest = number;
  for (size_t d = extents.size(); d-- > 1;) {
    const std::string extent = out_.count(extents[d]);
    indices[d] = out_.value("urem i64 {}, {}", rest, extent);
    rest = out_.value("udiv i64 {}, {}", rest, extent);
  }
  indices[0] = rest;
  return indices;
}

std::string LlvmText::immediate(Slot slot) {
  const DType dtype = kernel_.body[slot].dtype;
  const DType written = ir::is_half(dtype) ? DType::f32 : dtype;
  const ir::Scalar& value = std::get<kernel::Immediate>(kernel_.body[slot].operation).value;
  std::string splat = fmt::format("splat ({} {})", register_type(written), constant(value, written));
  return emit_cast(out_, std::move(splat), written, dtype, lanes_);
}

bool LlvmText::is_host_scalar(Slot slot) const {
  const auto* load = std::get_if<kernel::Load>(&kernel_.body[slot].operation);
  return load != nullptr && kernel_.params[load->param].role == kernel::Param::Role::host_scalar;
}

std::string LlvmText::host_scalar(Slot slot) {
  const uint32_t param = std::get<kernel::Load>(kernel_.body[slot].operation).param;
  const DType passed = ir::is_float(kernel_.params[param].dtype) ? DType::f64 : DType::i64;
  return emit_cast(out_, emit_splat_load(out_, pointers_[param], passed, lanes_), passed, kernel_.body[slot].dtype,
                   lanes_);
}

std::string LlvmText::compute(Slot slot, const std::vector<std::string>& values) {
  const auto& compute = std::get<Compute>(kernel_.body[slot].operation);
  out_.line("; {}", ir::row(compute.op).name);
  if (is_cast(compute)) {
    const Slot operand = compute.operands.front();
    return emit_cast(out_, values[operand], kernel_.body[operand].dtype, kernel_.body[slot].dtype, lanes_);
  }
  std::vector<std::string> operands;
  operands.reserve(compute.operands.size());
  for (const Slot operand : compute.operands) operands.push_back(values[operand]);
  return emit_op(out_, ir::row(compute.op), operands, compute_dtype(kernel_, compute), lanes_, vector_bits_, math_);
}

bool LlvmText::stays_call(Slot slot) const {
  if (!is_call(kernel_, slot)) return false;
  const auto& compute = std::get<Compute>(kernel_.body[slot].operation);
  return codegen::stays_call(ir::row(compute.op), compute_dtype(kernel_, compute), vector_bits_, math_);
}

std::string LlvmText::mask_below(const std::string& count) {
  const std::string count32 = out_.value("trunc i64 {} to i32", count);
  return out_.value("icmp ult {} {}, {}", vector_of(lanes_, "i32"), lane_numbers(lanes_, "i32"),
                    emit_splat(out_, count32, "i32", lanes_));
}

std::string LlvmText::mask_up_to(const std::string& count) {
  const std::string short_of = out_.value("icmp slt i64 {}, {}", count, lanes_);
  return mask_below(out_.value("select i1 {}, i64 {}, i64 {}", short_of, count, lanes_));
}

/// Loads of the numbers that come after the tensors, each through a pointer.
std::string LlvmText::size_parameters() const {
  std::string text;
  for (size_t n = 0; n < sizes().size(); ++n) {
    text += fmt::format("  %n{0}.slot = getelementptr ptr, ptr %params, i64 {1}\n", n, kernel_.params.size() + n);
    text += fmt::format("  %n{0}.at = load ptr, ptr %n{0}.slot, align 8\n", n);
    text += fmt::format("  %n{0} = load i64, ptr %n{0}.at, align 8\n", n);
  }
  return text;
}

std::string LlvmText::finish() const {
  std::string text;
  for (const std::string& declaration : out_.declarations()) text += fmt::format("declare {}\n", declaration);
  if (!text.empty()) text += '\n';
  for (const std::string& definition : out_.definitions()) text += definition + '\n';
  text += fmt::format("define void @{}(ptr readonly %params, i64 %begin, i64 %end) nounwind {{\n", kernel_.name);
  return text + "entry:\n" + size_parameters() + out_.body() + "}\n";
}

}  // namespace sinter::codegen
