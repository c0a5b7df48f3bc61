#include "compiler/codegen/llvm_writer.h"

#include <bit>
#include <limits>
#include <variant>

#include "compiler/support/errors.h"

namespace sinter::codegen {

using ir::DType;

namespace {

bool is_float_register(DType dtype) { return dtype == DType::f64 || dtype == DType::f32; }
bool is_unsigned(DType dtype) { return dtype == DType::u8 || dtype == DType::b8; }

std::string convert(LlvmWriter& out, std::string_view instruction, const std::string& value, DType from, DType to,
                    int64_t lanes) {
  return out.value("{} {} {} to {}", instruction, vector_of(lanes, register_type(from)), value,
                   vector_of(lanes, register_type(to)));
}

std::string bf16_to_f32(LlvmWriter& out, const std::string& value, int64_t lanes) {
  const std::string i32 = vector_of(lanes, "i32");
  const std::string wide = out.value("zext {} {} to {}", vector_of(lanes, "i16"), value, i32);
  const std::string bits = out.value("shl {} {}, splat (i32 16)", i32, wide);
  return out.value("bitcast {} {} to {}", i32, bits, vector_of(lanes, "float"));
}

/// Adds half of the last kept bit, less one where that bit is even, and keeps the upper half; NaN becomes 0x7FC0.
std::string f32_to_bf16(LlvmWriter& out, const std::string& value, int64_t lanes) {
  const std::string i32 = vector_of(lanes, "i32");
  const std::string f32 = vector_of(lanes, "float");
  const std::string bits = out.value("bitcast {} {} to {}", f32, value, i32);
  const std::string upper = out.value("lshr {} {}, splat (i32 16)", i32, bits);
  const std::string odd = out.value("and {} {}, splat (i32 1)", i32, upper);
  const std::string bias = out.value("add {} {}, splat (i32 32767)", i32, odd);
  const std::string sum = out.value("add {} {}, {}", i32, bits, bias);
  const std::string rounded = out.value("lshr {} {}, splat (i32 16)", i32, sum);
  const std::string is_nan = out.value("fcmp uno {} {}, zeroinitializer", f32, value);
  const std::string kept =
      out.value("select {} {}, {} splat (i32 32704), {} {}", vector_of(lanes, "i1"), is_nan, i32, i32, rounded);
  return out.value("trunc {} {} to {}", i32, kept, vector_of(lanes, "i16"));
}

std::string to_bool(LlvmWriter& out, const std::string& value, DType from, int64_t lanes) {
  const char* compare = is_float_register(from) ? "fcmp une" : "icmp ne";
  return out.value("{} {} {}, zeroinitializer", compare, vector_of(lanes, register_type(from)), value);
}

/// ATen converts a float to u8 through i64 and to i8 and i16 through i32: out of range values wrap, NaN gives 0.
std::string float_to_int(LlvmWriter& out, const std::string& value, DType from, DType to, int64_t lanes) {
  const DType through = to == DType::u8 ? DType::i64 : to == DType::i64 ? DType::i64 : DType::i32;
  std::string wide = convert(out, "fptosi", value, from, through, lanes);
  return through == to ? wide : convert(out, "trunc", wide, through, to, lanes);
}

std::string int_to_int(LlvmWriter& out, const std::string& value, DType from, DType to, int64_t lanes) {
  const int64_t from_bytes = from == DType::b8 ? 0 : ir::bytes_of(from);
  const int64_t to_bytes = ir::bytes_of(to);
  if (from_bytes == to_bytes) return value;
  if (from_bytes > to_bytes) return convert(out, "trunc", value, from, to, lanes);
  return convert(out, is_unsigned(from) ? "zext" : "sext", value, from, to, lanes);
}

int64_t wrap(int64_t value, DType dtype) {
  switch (dtype) {
    case DType::i32:
      return static_cast<int32_t>(value);
    case DType::i16:
      return static_cast<int16_t>(value);
    case DType::i8:
      return static_cast<int8_t>(value);
    case DType::u8:
      return static_cast<uint8_t>(value);
    default:
      return value;
  }
}

/// C++'s conversion where it is defined, x86's answer (the smallest integer) elsewhere.
int64_t to_integer(double value) {
  if (value >= -0x1p63 && value < 0x1p63) return static_cast<int64_t>(value);
  return std::numeric_limits<int64_t>::min();
}

template <class T>
T scalar_to(const ir::Scalar& value) {
  return std::visit([](auto v) { return static_cast<T>(v); }, value);
}

}  // namespace

std::string LlvmWriter::size(int64_t number) {
  const auto parameter = sizes_.parameter(number);
  return parameter ? fmt::format("%n{}", *parameter) : fmt::format("{}", number);
}

std::string LlvmWriter::count(int64_t number) {
  const auto parameter = sizes_.count(number);
  return parameter ? fmt::format("%n{}", *parameter) : fmt::format("{}", number);
}

std::string_view register_type(DType dtype) { return dtype == DType::b8 ? "i1" : memory_type(dtype); }

std::string_view memory_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "double";
    case DType::f32:
      return "float";
    case DType::f16:
      return "half";
    case DType::bf16:
      return "i16";
    case DType::i64:
      return "i64";
    case DType::i32:
      return "i32";
    case DType::i16:
      return "i16";
    case DType::i8:
      return "i8";
    case DType::u8:
      return "i8";
    case DType::b8:
      return "i8";
    default:
      throw InternalError("llvm", fmt::format("no LLVM type for dtype {}", ir::name(dtype)));
  }
}

std::string vector_of(int64_t lanes, std::string_view element) { return fmt::format("<{} x {}>", lanes, element); }

std::string intrinsic_suffix(int64_t lanes, std::string_view element) {
  std::string_view short_name = element;
  if (element == "double") short_name = "f64";
  if (element == "float") short_name = "f32";
  if (element == "half") short_name = "f16";
  if (element == "ptr") short_name = "p0";
  return lanes == 1 ? std::string(short_name) : fmt::format("v{}{}", lanes, short_name);
}

std::string lane_numbers(int64_t lanes, std::string_view element, int64_t factor) {
  std::string text = "<";
  for (int64_t lane = 0; lane < lanes; ++lane) {
    text += fmt::format("{}{} {}", lane == 0 ? "" : ", ", element, lane * factor);
  }
  return text + ">";
}

std::string constant(const ir::Scalar& value, DType dtype) {
  switch (dtype) {
    case DType::f64:
      return fmt::format("0x{:016X}", std::bit_cast<uint64_t>(scalar_to<double>(value)));
    case DType::f32:
      return fmt::format("0x{:016X}", std::bit_cast<uint64_t>(static_cast<double>(scalar_to<float>(value))));
    case DType::b8:
      return scalar_to<bool>(value) ? "true" : "false";
    case DType::f16:
    case DType::bf16:
      throw InternalError("llvm", "a half constant has no text of its own; cast it from f32");
    default:
      break;
  }
  const auto* real = std::get_if<double>(&value);
  return fmt::format("{}", wrap(real ? to_integer(*real) : scalar_to<int64_t>(value), dtype));
}

std::string emit_cast(LlvmWriter& out, std::string value, DType from, DType to, int64_t lanes) {
  if (from == to) return value;
  if (from == DType::bf16) return emit_cast(out, bf16_to_f32(out, value, lanes), DType::f32, to, lanes);
  if (from == DType::f16 && to != DType::f32) {
    return emit_cast(out, convert(out, "fpext", value, from, DType::f32, lanes), DType::f32, to, lanes);
  }
  if (ir::is_half(to) && from != DType::f32) {
    return emit_cast(out, emit_cast(out, value, from, DType::f32, lanes), DType::f32, to, lanes);
  }
  if (to == DType::bf16) return f32_to_bf16(out, value, lanes);
  if (to == DType::b8) return to_bool(out, value, from, lanes);
  if (ir::is_float(from) && ir::is_float(to)) {
    return convert(out, ir::bytes_of(from) < ir::bytes_of(to) ? "fpext" : "fptrunc", value, from, to, lanes);
  }
  if (ir::is_float(from)) return float_to_int(out, value, from, to, lanes);
  if (ir::is_float(to)) return convert(out, is_unsigned(from) ? "uitofp" : "sitofp", value, from, to, lanes);
  return int_to_int(out, value, from, to, lanes);
}

}  // namespace sinter::codegen
