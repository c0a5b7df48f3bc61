#include "compiler/codegen/llvm_ops.h"

#include <algorithm>

#include "compiler/support/errors.h"

namespace sinter::codegen {

using ir::DType;

namespace {

std::string libm_name(std::string_view c_name, DType dtype) {
  return fmt::format("{}{}", c_name, dtype == DType::f32 ? "f" : "");
}

std::string join(const std::vector<std::string>& parts) { return fmt::format("{}", fmt::join(parts, ", ")); }

/// "<16 x float> %a, <16 x float> %b".
std::string typed(std::string_view type, const std::vector<std::string>& operands) {
  std::vector<std::string> parts;
  parts.reserve(operands.size());
  for (const std::string& operand : operands) parts.push_back(fmt::format("{} {}", type, operand));
  return join(parts);
}

void declare(LlvmWriter& out, std::string_view function, std::string_view type, size_t arity) {
  out.declare(fmt::format("{} @{}({})", type, function, join(std::vector<std::string>(arity, std::string(type)))));
}

/// Lanes [first, first + count) of a vector; lanes beyond `lanes` repeat the last one.
std::string emit_slice(LlvmWriter& out, std::string_view type, const std::string& value, int64_t first, int64_t count,
                       int64_t lanes) {
  std::string mask = "<";
  for (int64_t i = 0; i < count; ++i) {
    mask += fmt::format("{}i32 {}", i == 0 ? "" : ", ", std::min(first + i, lanes - 1));
  }
  return out.value("shufflevector {} {}, {} poison, {} {}>", type, value, type, vector_of(count, "i32"), mask);
}

/// Joins equal halves: {a, b, c, d} of `lanes` lanes each, pairwise.
std::string emit_concat(LlvmWriter& out, std::vector<std::string> parts, std::string_view element, int64_t lanes) {
  while (parts.size() > 1) {
    std::vector<std::string> joined;
    const std::string type = vector_of(lanes, element);
    for (size_t i = 0; i < parts.size(); i += 2) {
      joined.push_back(out.value("shufflevector {} {}, {} {}, {} {}", type, parts[i], type, parts[i + 1],
                                 vector_of(2 * lanes, "i32"), lane_numbers(2 * lanes, "i32")));
    }
    parts = std::move(joined);
    lanes *= 2;
  }
  return parts.front();
}

/// Calls a function of `width` lanes on vectors of `lanes` lanes; one is a power of two times the other.
std::string emit_wide_call(LlvmWriter& out, const std::string& function, const std::vector<std::string>& operands,
                           std::string_view element, int64_t width, int64_t lanes) {
  const std::string type = vector_of(width, element);
  const std::string whole = vector_of(lanes, element);
  declare(out, function, type, operands.size());
  if (width == lanes) return out.value("call {} @{}({})", type, function, typed(type, operands));
  std::vector<std::string> parts;
  for (int64_t first = 0; first < lanes; first += width) {
    std::vector<std::string> slices;
    slices.reserve(operands.size());
    for (const std::string& operand : operands) {
      slices.push_back(emit_slice(out, whole, operand, first, width, lanes));
    }
    parts.push_back(out.value("call {} @{}({})", type, function, typed(type, slices)));
  }
  if (lanes > width) return emit_concat(out, std::move(parts), element, width);
  return emit_slice(out, type, parts.front(), 0, lanes, width);
}

std::string emit_lane_calls(LlvmWriter& out, const std::string& function, const std::vector<std::string>& operands,
                            std::string_view element, int64_t lanes) {
  const std::string type = vector_of(lanes, element);
  declare(out, function, element, operands.size());
  std::string result = "poison";
  for (int64_t lane = 0; lane < lanes; ++lane) {
    std::vector<std::string> scalars;
    scalars.reserve(operands.size());
    for (const std::string& operand : operands) {
      scalars.push_back(out.value("extractelement {} {}, i64 {}", type, operand, lane));
    }
    const std::string one = out.value("call {} @{}({})", element, function, typed(element, scalars));
    result = out.value("insertelement {} {}, {} {}, i64 {}", type, result, element, one, lane);
  }
  return result;
}

std::string emit_intrinsic(LlvmWriter& out, std::string_view name, const std::vector<std::string>& operands,
                           std::string_view element, int64_t lanes) {
  const std::string type = vector_of(lanes, element);
  const std::string function = fmt::format("llvm.{}.{}", name, intrinsic_suffix(lanes, element));
  declare(out, function, type, operands.size());
  return out.value("call {} @{}({})", type, function, typed(type, operands));
}

std::string emit_inverse(LlvmWriter& out, const std::string& value, std::string_view element, int64_t lanes) {
  const std::string one = lanes == 1 ? "1.0" : fmt::format("splat ({} 1.0)", element);
  return out.value("fdiv {} {}, {}", vector_of(lanes, element), one, value);
}

/// Fills a template's holes. "{r}" and "{0}" may stand inside longer names ("{r}.a").
std::string fill(std::string_view text, std::string_view result, const std::vector<std::string>& operands,
                 std::string_view type, std::string_view mask) {
  std::string filled;
  for (size_t at = 0; at < text.size(); ++at) {
    const size_t close = text[at] == '{' ? text.find('}', at) : std::string_view::npos;
    if (close == std::string_view::npos) {
      filled += text[at];
      continue;
    }
    const std::string_view hole = text.substr(at + 1, close - at - 1);
    if (hole == "r") {
      filled += result;
    } else if (hole == "t") {
      filled += type;
    } else if (hole == "mask") {
      filled += mask;
    } else if (hole.size() == 1 && hole[0] >= '0' && static_cast<size_t>(hole[0] - '0') < operands.size()) {
      filled += operands[static_cast<size_t>(hole[0] - '0')];
    } else {
      throw InternalError("llvm", fmt::format("op template has an unknown hole '{{{}}}': {}", hole, text));
    }
    at = close;
  }
  return filled;
}

std::string emit_template(LlvmWriter& out, std::string_view text, const std::vector<std::string>& operands,
                          std::string_view element, int64_t lanes) {
  const std::string result = out.fresh();
  const std::string filled = fill(text, result, operands, vector_of(lanes, element), vector_of(lanes, "i1"));
  for (size_t begin = 0; begin < filled.size();) {
    const size_t end = std::min(filled.find('\n', begin), filled.size());
    out.line("{}", std::string_view(filled).substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

bool is_call(const ir::OpRow& row, DType dtype) {
  const std::string_view text = row.native().llvm_text(dtype);
  return text.starts_with("call:") || text.starts_with("scalar:");
}

bool stays_call(const ir::OpRow& row, DType dtype, int vector_bits, VectorMath math) {
  std::string_view text = row.native().llvm_text(dtype);
  if (!take_prefix(text, "call:")) return is_call(row, dtype);
  return !is_inlined(text, dtype, vector_bits, math);
}

std::string emit_op(LlvmWriter& out, const ir::OpRow& row, const std::vector<std::string>& operands, DType dtype,
                    int64_t lanes, int vector_bits, VectorMath math) {
  const bool computes_in_halves = ir::is_half(dtype) && row.rule != ir::TypeRule::select;
  std::string_view text = computes_in_halves ? std::string_view() : row.native().llvm_text(dtype);
  if (text.empty()) {
    throw InternalError("llvm", fmt::format("op {} has no LLVM form for {}", row.name, ir::name(dtype)));
  }
  const std::string_view element = register_type(dtype);
  if (take_prefix(text, "intrinsic:")) return emit_intrinsic(out, text, operands, element, lanes);
  if (take_prefix(text, "inverse:"))
    return emit_inverse(out, emit_intrinsic(out, text, operands, element, lanes), element, lanes);
  if (take_prefix(text, "scalar:")) return emit_lane_calls(out, libm_name(text, dtype), operands, element, lanes);
  if (!take_prefix(text, "call:")) return emit_template(out, text, operands, element, lanes);
  if (is_inlined(text, dtype, vector_bits, math)) {
    const std::string own = define_inline(out, text, lanes, vector_bits);
    const std::string type = vector_of(lanes, element);
    return out.value("call {} @{}({})", type, own, typed(type, operands));
  }
  const std::string function = sleef_name(text, dtype, vector_bits);
  if (function.empty()) return emit_lane_calls(out, libm_name(text, dtype), operands, element, lanes);
  return emit_wide_call(out, function, operands, element, vector_bits / (8 * ir::bytes_of(dtype)), lanes);
}

}  // namespace sinter::codegen
