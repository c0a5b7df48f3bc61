#include "compiler/codegen/llvm_access.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace sinter::codegen {

using ir::DType;

namespace {

/// acc + value, folding the empty (zero) accumulator.
std::string add(LlvmWriter& out, std::string_view type, const std::string& sum, const std::string& value) {
  return sum.empty() ? value : out.value("add {} {}, {}", type, sum, value);
}

/// offset + sum(strides * outer): an i64 operand.
std::string emit_outer_sum(LlvmWriter& out, const ir::Affine& affine, const std::vector<std::string>& outer) {
  std::string sum = affine.offset == 0 ? "" : out.size(affine.offset);
  for (size_t d = 0; d < outer.size(); ++d) {
    const int64_t stride = stride_of(affine, d);
    if (stride == 0) continue;
    sum = add(out, "i64", sum, stride == 1 ? outer[d] : out.value("mul i64 {}, {}", outer[d], out.size(stride)));
  }
  return sum.empty() ? "0" : sum;
}

/// scale * ((inner / divisor) % modulus) on integers of a type; `number` writes an operand of it, `divide` a quotient.
template <class Number, class Divide>
std::string emit_digit(LlvmWriter& out, std::string_view type, std::string value, const ir::QuasiTerm& term,
                       Number number, Divide divide) {
  if (term.divisor != 1) value = divide(value, number(term.divisor));
  if (term.modulus != 0 && !out.sizes().generic()) {
    value = out.value("urem {} {}, {}", type, value, number(term.modulus));
  } else if (term.modulus != 0) {
    const std::string modulus = number(term.modulus);
    const std::string whole = out.value("mul {} {}, {}", type, divide(value, modulus), modulus);
    value = out.value("sub {} {}, {}", type, value, whole);
  }
  if (term.scale != 1) value = out.value("mul {} {}, {}", type, value, number(term.scale));
  return value;
}

/// Quotients of lanes that are not negative. Processors divide no vectors of integers: where the divisor is a
/// parameter, 31 bits are divided as doubles, which is exact once rounded down.
std::string emit_vector_quotient(LlvmWriter& out, std::string_view element, int64_t lanes, const std::string& dividend,
                                 const std::string& divisor) {
  const std::string type = vector_of(lanes, element);
  if (!out.sizes().generic() || element != "i32") return out.value("udiv {} {}, {}", type, dividend, divisor);
  const std::string real = vector_of(lanes, "double");
  const std::string above = out.value("sitofp {} {} to {}", type, dividend, real);
  const std::string below = out.value("sitofp {} {} to {}", type, divisor, real);
  const std::string quotient = out.value("fdiv {} {}, {}", real, above, below);
  return out.value("fptosi {} {} to {}", real, quotient, type);
}

bool follows_inner(const Nest& nest, const ir::QuasiTerm& term) { return stride_of(term.inner, nest.rank() - 1) != 0; }

/// Largest absolute value an affine form takes.
int64_t bound(const Nest& nest, const ir::Affine& affine) {
  int64_t largest = std::llabs(affine.offset);
  for (size_t d = 0; d < nest.rank(); ++d) largest += std::llabs(stride_of(affine, d)) * nest.extents[d];
  return largest;
}

/// True when every number on the way to the access's offsets within a row fits an i32.
bool fits_i32(const Nest& nest, const Access& access) {
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  int64_t sum = std::llabs(stride_of(access.index.affine, nest.rank() - 1)) * nest.inner();
  for (const ir::QuasiTerm& term : access.index.terms) {
    if (!follows_inner(nest, term)) continue;
    const int64_t inner = bound(nest, term.inner);
    if (inner > limit || term.divisor > limit || term.modulus > limit) return false;
    sum += std::llabs(term.scale) * (inner / term.divisor + 1);
    if (sum > limit) return false;
  }
  return sum <= limit;
}

/// True when the whole index fits an i32 as well.
bool index_fits_i32(const Nest& nest, const Access& access) {
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  int64_t sum = bound(nest, access.index.affine);
  for (const ir::QuasiTerm& term : access.index.terms) sum += std::llabs(term.scale) * bound(nest, term.inner);
  return sum <= limit && fits_i32(nest, access);
}

/// An i64 operand in all lanes, as i32 or i64.
std::string spread(LlvmWriter& out, std::string scalar, std::string_view element, int64_t lanes) {
  if (element == "i32") scalar = out.value("trunc i64 {} to i32", scalar);
  return emit_splat(out, scalar, element, lanes);
}

/// A number that sizes decide, in all lanes.
std::string spread_size(LlvmWriter& out, int64_t value, std::string_view element, int64_t lanes) {
  std::string operand = out.size(value);
  if (operand.starts_with('%')) return spread(out, std::move(operand), element, lanes);
  return fmt::format("splat ({} {})", element, operand);
}

/// Offsets, in elements from the row's first one, of an access that moves along the row: a vector of i32 or i64.
std::string emit_offsets(LlvmWriter& out, const AccessSite& site, const Step& step, std::string_view element) {
  const std::string type = vector_of(site.lanes, element);
  const auto number = [&](int64_t value) { return spread_size(out, value, element, site.lanes); };
  const auto divide = [&](const std::string& dividend, const std::string& divisor) {
    return emit_vector_quotient(out, element, site.lanes, dividend, divisor);
  };
  const size_t inner_dim = site.nest.rank() - 1;
  const std::string inner =
      out.value("add {} {}, {}", type, spread(out, step.index, element, site.lanes), lane_numbers(site.lanes, element));
  const auto scaled = [&](int64_t stride) {
    return stride == 1 ? inner : out.value("mul {} {}, {}", type, inner, number(stride));
  };

  std::string sum;
  if (const int64_t stride = stride_of(site.access.index.affine, inner_dim)) sum = scaled(stride);
  for (const ir::QuasiTerm& term : site.access.index.terms) {
    if (!follows_inner(site.nest, term)) continue;
    std::string value = scaled(stride_of(term.inner, inner_dim));
    const std::string row = emit_outer_sum(out, term.inner, site.outer);
    if (row != "0") value = out.value("add {} {}, {}", type, value, spread(out, row, element, site.lanes));
    sum = add(out, type, sum, emit_digit(out, type, std::move(value), term, number, divide));
  }
  return sum;
}

/// One pointer a lane.
std::string emit_pointers(LlvmWriter& out, const AccessSite& site, const Step& step) {
  const std::string_view memory = memory_type(site.dtype);
  if (site.access.walk == Walk::scattered) {
    const std::string_view element = fits_i32(site.nest, site.access) ? "i32" : "i64";
    return out.value("getelementptr {}, ptr {}, {} {}", memory, site.row_pointer, vector_of(site.lanes, element),
                     emit_offsets(out, site, step, element));
  }
  const int64_t stride = stride_of(site.access.index.affine, site.nest.rank() - 1);
  const std::string distance = out.size(stride);
  const std::string offset = out.value("mul i64 {}, {}", step.index, distance);
  const std::string first = out.value("getelementptr {}, ptr {}, i64 {}", memory, site.row_pointer, offset);
  const std::string type = vector_of(site.lanes, "i64");
  if (!out.sizes().generic()) {
    return out.value("getelementptr {}, ptr {}, {} {}", memory, first, type, lane_numbers(site.lanes, "i64", stride));
  }
  const std::string offsets =
      out.value("mul {} {}, {}", type, lane_numbers(site.lanes, "i64"), emit_splat(out, distance, "i64", site.lanes));
  return out.value("getelementptr {}, ptr {}, {} {}", memory, first, type, offsets);
}

std::string first_pointer(LlvmWriter& out, const AccessSite& site, const Step& step) {
  return out.value("getelementptr {}, ptr {}, i64 {}", memory_type(site.dtype), site.row_pointer, step.index);
}

std::string_view one(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::f32:
      return "1.0";
    case DType::f16:
      return "0xH3C00";
    case DType::bf16:
      return "16256";
    default:
      return "1";
  }
}

/// What the masked intrinsics need in their names and signatures.
struct Masked {
  std::string vector, suffix, mask;
  std::string pointers;  ///< type of the address operand: "ptr" or "<16 x ptr>"

  Masked(const AccessSite& site, bool many_pointers)
      : vector(vector_of(site.lanes, memory_type(site.dtype))),
        suffix(intrinsic_suffix(site.lanes, memory_type(site.dtype))),
        mask(vector_of(site.lanes, "i1")),
        pointers(many_pointers ? vector_of(site.lanes, "ptr") : "ptr") {
    suffix += "." + intrinsic_suffix(many_pointers ? site.lanes : 1, "ptr");
  }
};

std::string emit_masked_load(LlvmWriter& out, const AccessSite& site, const std::string& address,
                             const std::string& lane_mask, bool gather) {
  const Masked names(site, gather);
  const std::string function = fmt::format("@llvm.masked.{}.{}", gather ? "gather" : "load", names.suffix);
  out.declare(fmt::format("{} {}({}, i32, {}, {})", names.vector, function, names.pointers, names.mask, names.vector));
  const std::string_view memory = memory_type(site.dtype);
  return out.value("call {} {}({} {}, i32 {}, {} {}, {} splat ({} {}))", names.vector, function, names.pointers,
                   address, ir::bytes_of(site.dtype), names.mask, lane_mask, names.vector, memory, one(site.dtype));
}

/// A gather of elements that no gather instruction handles: one scalar load a lane. Lanes out of range read what
/// lane 0 reads, which is in range, or under a guard what may be read in any case.
std::string emit_lane_loads(LlvmWriter& out, const AccessSite& site, std::string pointers, const std::string& mask) {
  const std::string vector = vector_of(site.lanes, "ptr");
  const std::string_view memory = memory_type(site.dtype);
  if (!mask.empty()) {
    const std::string first =
        site.guard.empty() ? out.value("extractelement {} {}, i64 0", vector, pointers) : site.anywhere;
    pointers = out.value("select {} {}, {} {}, {} {}", vector_of(site.lanes, "i1"), mask, vector, pointers, vector,
                         emit_splat(out, first, "ptr", site.lanes));
  }
  std::string value = "poison";
  for (int64_t lane = 0; lane < site.lanes; ++lane) {
    const std::string pointer = out.value("extractelement {} {}, i64 {}", vector, pointers, lane);
    const std::string element = out.value("load {}, ptr {}, align {}", memory, pointer, ir::bytes_of(site.dtype));
    value =
        out.value("insertelement {} {}, {} {}, i64 {}", vector_of(site.lanes, memory), value, memory, element, lane);
  }
  return value;
}

void emit_masked_store(LlvmWriter& out, const AccessSite& site, const std::string& address, const std::string& value,
                       const std::string& lane_mask, bool scatter) {
  const Masked names(site, scatter);
  const std::string function = fmt::format("@llvm.masked.{}.{}", scatter ? "scatter" : "store", names.suffix);
  out.declare(fmt::format("void {}({}, {}, i32, {})", function, names.vector, names.pointers, names.mask));
  out.line("call void {}({} {}, {} {}, i32 {}, {} {})", function, names.vector, value, names.pointers, address,
           ir::bytes_of(site.dtype), names.mask, lane_mask);
}

std::string to_register(LlvmWriter& out, std::string value, DType dtype, int64_t lanes) {
  if (dtype != DType::b8) return value;
  return out.value("icmp ne {} {}, zeroinitializer", vector_of(lanes, "i8"), value);
}

std::string to_memory(LlvmWriter& out, std::string value, DType dtype, int64_t lanes) {
  if (dtype != DType::b8) return value;
  return out.value("zext {} {} to {}", vector_of(lanes, "i1"), value, vector_of(lanes, "i8"));
}

/// The index at the row's first point: an i64 operand.
std::string emit_row_index(LlvmWriter& out, const Access& access, const std::vector<std::string>& outer) {
  std::string offset = emit_outer_sum(out, access.index.affine, outer);
  for (const ir::QuasiTerm& term : access.index.terms) {
    if (stride_of(term.inner, outer.size()) != 0) continue;
    const auto number = [&](int64_t value) { return out.size(value); };
    const auto divide = [&](const std::string& dividend, const std::string& divisor) {
      return out.value("udiv i64 {}, {}", dividend, divisor);
    };
    offset = out.value("add i64 {}, {}", offset,
                       emit_digit(out, "i64", emit_outer_sum(out, term.inner, outer), term, number, divide));
  }
  return offset;
}

/// The row's first element; under a guard that no lane passes, another one.
std::string readable_element(LlvmWriter& out, const AccessSite& site, const std::string& mask) {
  if (site.guard.empty()) return site.row_pointer;
  const std::string bits = out.value("bitcast {} {} to i{}", vector_of(site.lanes, "i1"), mask, site.lanes);
  const std::string any = out.value("icmp ne i{} {}, 0", site.lanes, bits);
  return out.value("select i1 {}, ptr {}, ptr {}", any, site.row_pointer, site.anywhere);
}

}  // namespace

std::string emit_row_pointer(LlvmWriter& out, const Access& access, std::string_view base, DType dtype,
                             const std::vector<std::string>& outer) {
  const std::string offset = emit_row_index(out, access, outer);
  if (offset == "0") return std::string(base);
  return out.value("getelementptr {}, ptr {}, i64 {}", memory_type(dtype), base, offset);
}

std::string emit_splat(LlvmWriter& out, std::string_view scalar, std::string_view element, int64_t lanes) {
  const std::string vector = vector_of(lanes, element);
  const std::string first = out.value("insertelement {} poison, {} {}, i64 0", vector, element, scalar);
  return out.value("shufflevector {} {}, {} poison, {} zeroinitializer", vector, first, vector,
                   vector_of(lanes, "i32"));
}

std::string emit_splat_load(LlvmWriter& out, std::string_view pointer, DType dtype, int64_t lanes) {
  const std::string_view memory = memory_type(dtype);
  const std::string scalar = out.value("load {}, ptr {}, align {}", memory, pointer, ir::bytes_of(dtype));
  return to_register(out, emit_splat(out, scalar, memory, lanes), dtype, lanes);
}

std::string emit_inside(LlvmWriter& out, const AccessSite& site, const Step& step, int64_t begin, int64_t end) {
  const std::string row = emit_row_index(out, site.access, site.outer);
  const auto compared = [&](const std::string& type, const std::string& index, const std::string& from,
                            const std::string& to, const std::string& answer) {
    const std::string above = out.value("icmp sge {} {}, {}", type, index, from);
    const std::string below = out.value("icmp slt {} {}, {}", type, index, to);
    return out.value("and {} {}, {}", answer, above, below);
  };
  if (site.access.walk == Walk::uniform) {
    return emit_splat(out, compared("i64", row, out.size(begin), out.size(end), "i1"), "i1", site.lanes);
  }
  const std::string_view element = index_fits_i32(site.nest, site.access) ? "i32" : "i64";
  const std::string type = vector_of(site.lanes, element);
  std::string index = emit_offsets(out, site, step, element);
  if (row != "0") index = out.value("add {} {}, {}", type, index, spread(out, row, element, site.lanes));
  return compared(type, index, spread_size(out, begin, element, site.lanes), spread_size(out, end, element, site.lanes),
                  vector_of(site.lanes, "i1"));
}

std::string emit_load(LlvmWriter& out, const AccessSite& site, const Step& step) {
  std::string mask = site.guard.empty() ? step.mask : site.guard;
  if (!site.guard.empty() && !step.mask.empty()) {
    mask = out.value("and {} {}, {}", vector_of(site.lanes, "i1"), site.guard, step.mask);
  }
  if (site.access.walk == Walk::uniform) {
    return emit_splat_load(out, readable_element(out, site, mask), site.dtype, site.lanes);
  }
  std::string value;
  if (site.access.walk != Walk::contiguous && ir::bytes_of(site.dtype) < 4) {
    value = emit_lane_loads(out, site, emit_pointers(out, site, step), mask);
  } else if (site.access.walk != Walk::contiguous) {
    const std::string lanes = mask.empty() ? "splat (i1 true)" : mask;
    value = emit_masked_load(out, site, emit_pointers(out, site, step), lanes, true);
  } else if (!mask.empty()) {
    value = emit_masked_load(out, site, first_pointer(out, site, step), mask, false);
  } else {
    value = out.value("load {}, ptr {}, align {}", vector_of(site.lanes, memory_type(site.dtype)),
                      first_pointer(out, site, step), ir::bytes_of(site.dtype));
  }
  return to_register(out, std::move(value), site.dtype, site.lanes);
}

void emit_store(LlvmWriter& out, const AccessSite& site, const Step& step, std::string value) {
  value = to_memory(out, std::move(value), site.dtype, site.lanes);
  const bool neighbours = site.access.walk == Walk::contiguous || site.nest.inner() == 1;
  if (!neighbours) {
    const std::string mask = step.mask.empty() ? "splat (i1 true)" : step.mask;
    emit_masked_store(out, site, emit_pointers(out, site, step), value, mask, true);
    return;
  }
  const std::string address = first_pointer(out, site, step);
  if (!step.mask.empty()) {
    emit_masked_store(out, site, address, value, step.mask, false);
    return;
  }
  out.line("store {} {}, ptr {}, align {}", vector_of(site.lanes, memory_type(site.dtype)), value, address,
           ir::bytes_of(site.dtype));
}

void emit_first_lane_store(LlvmWriter& out, std::string_view pointer, DType dtype, std::string value, int64_t lanes) {
  value = to_memory(out, std::move(value), dtype, lanes);
  const std::string_view memory = memory_type(dtype);
  const std::string first = out.value("extractelement {} {}, i64 0", vector_of(lanes, memory), value);
  out.line("store {} {}, ptr {}, align {}", memory, first, pointer, ir::bytes_of(dtype));
}

}  // namespace sinter::codegen
