#include "compiler/codegen/llvm_math.h"

#include <algorithm>
#include <array>
#include <initializer_list>

namespace sinter::codegen {

using ir::DType;

namespace {

/// SLEEF's functions by C name, and the accuracy variants ATen calls.
constexpr std::string_view none{};  ///< libm's, an element at a time

struct SleefFunction {
  std::string_view c_name;
  std::string_view f32 = "_u10";
  std::string_view f64 = "_u10";
};
constexpr std::array sleef_functions = std::to_array<SleefFunction>({
    {"acos"},
    {"acosh"},
    {"asin"},
    {"asinh"},
    {"atan"},
    {"atan2"},
    {"atanh"},
    {"cbrt"},
    {"cosh", none},  // Sleef's is infinite from 88.7 on, where the result is none yet
    {"erf"},
    {"exp"},
    {"exp2"},
    {"expm1"},
    {"lgamma"},
    {"log"},
    {"log10"},
    {"log1p"},
    {"log2"},
    {"pow"},
    {"sinh", none},  // the same
    {"tan"},
    {"tanh"},
    {"tgamma"},
    {"sin", "_u35"},
    {"cos", "_u35"},
    {"erfc", "_u15", "_u15"},
    {"hypot", "_u05", "_u05"},
    {"fmod", "_", "_"},
    {"nextafter", "_", "_"},
    {"copysign", "_", "_"},
});

/// Writes f32 vector arithmetic.
class F32Vectors {
 public:
  F32Vectors(LlvmWriter& out, int64_t lanes)
      : f32(vector_of(lanes, "float")),
        i32(vector_of(lanes, "i32")),
        i1(vector_of(lanes, "i1")),
        suffix(intrinsic_suffix(lanes, "float")),
        out_(out) {}

  const std::string f32, i32, i1, suffix;

  [[nodiscard]] static std::string number(float value) {
    return fmt::format("splat (float {})", constant(static_cast<double>(value), DType::f32));
  }
  std::string call(std::string_view name, std::initializer_list<std::string_view> operands) {
    std::string args, types;
    for (const std::string_view operand : operands) {
      const char* comma = args.empty() ? "" : ", ";
      args += fmt::format("{}{} {}", comma, f32, operand);
      types += fmt::format("{}{}", comma, f32);
    }
    out_.declare(fmt::format("{} @llvm.{}.{}({})", f32, name, suffix, types));
    return out_.value("call {} @llvm.{}.{}({})", f32, name, suffix, args);
  }
  std::string fma(std::string_view a, std::string_view b, std::string_view c) { return call("fma", {a, b, c}); }
  /// Coefficients from the highest power down.
  std::string polynomial(std::string_view x, std::initializer_list<float> coefficients) {
    std::string sum;
    for (const float c : coefficients) sum = sum.empty() ? number(c) : fma(sum, x, number(c));
    return sum;
  }
  std::string mul(std::string_view a, std::string_view b) { return out_.value("fmul {} {}, {}", f32, a, b); }
  std::string select(std::string_view mask, std::string_view yes, std::string_view no) {
    return out_.value("select {} {}, {} {}, {} {}", i1, mask, f32, yes, f32, no);
  }

 private:
  LlvmWriter& out_;
};

/// exp(x) as 2^n * p, n the nearest integer to x / ln 2.
struct ScaledExp {
  std::string n, p;
};

ScaledExp emit_scaled_exp(F32Vectors& v, std::string_view x) {
  const std::string n = v.call("rint", {v.mul(x, F32Vectors::number(1.44269504f))});
  const std::string upper = v.fma(n, F32Vectors::number(-0.693145752f), x);
  const std::string f = v.fma(n, F32Vectors::number(-1.42860677e-6f), upper);
  return {
      n, v.polynomial(f, {1.37805939e-3f, 8.37312452e-3f, 4.16695364e-2f, 1.66664720e-1f, 4.99999851e-1f, 1.0f, 1.0f})};
}

/// exp(x) for x in [-80, 0].
std::string emit_exp_of_negative(LlvmWriter& out, F32Vectors& v, std::string_view x) {
  const auto [n, p] = emit_scaled_exp(v, x);
  const std::string exponent = out.value("fptosi {} {} to {}", v.f32, n, v.i32);
  const std::string shifted = out.value("shl {} {}, splat (i32 23)", v.i32, exponent);
  const std::string bits = out.value("bitcast {} {} to {}", v.f32, p, v.i32);
  const std::string scaled = out.value("add {} {}, {}", v.i32, bits, shifted);
  return out.value("bitcast {} {} to {}", v.i32, scaled, v.f32);
}

/// 2^n for a whole n in [-126, 127].
std::string emit_power_of_two(LlvmWriter& out, F32Vectors& v, std::string_view n) {
  const std::string biased = out.value("add {} {}, splat (i32 127)", v.i32, n);
  const std::string bits = out.value("shl {} {}, splat (i32 23)", v.i32, biased);
  return out.value("bitcast {} {} to {}", v.i32, bits, v.f32);
}

/// exp(x) for every f32: inf and 0 where it leaves the range, denormals where it nears its end, NaN for NaN.
std::string emit_exp(LlvmWriter& out, F32Vectors& v, std::string_view x, bool scalef) {
  const std::string above = out.value("fcmp ogt {} {}, {}", v.f32, x, F32Vectors::number(89.0f));
  const std::string least = v.select(above, F32Vectors::number(89.0f), x);
  const std::string below = out.value("fcmp olt {} {}, {}", v.f32, least, F32Vectors::number(-104.0f));
  const auto [n, p] = emit_scaled_exp(v, v.select(below, F32Vectors::number(-104.0f), least));
  if (scalef) {
    const std::string function = "@llvm.x86.avx512.mask.scalef.ps.512";
    out.declare(fmt::format("{0} {1}({0}, {0}, {0}, i16, i32)", v.f32, function));
    return out.value("call {0} {1}({0} {2}, {0} {3}, {0} zeroinitializer, i16 -1, i32 4)", v.f32, function, p, n);
  }
  // In two steps, because 2^n alone may be no f32. NaN stays in p, whatever n becomes.
  const std::string number = out.value("fcmp ord {} {}, zeroinitializer", v.f32, n);
  const std::string whole =
      out.value("fptosi {} {} to {}", v.f32, v.select(number, n, F32Vectors::number(0.0f)), v.i32);
  const std::string half = out.value("ashr {} {}, splat (i32 1)", v.i32, whole);
  const std::string rest = out.value("sub {} {}, {}", v.i32, whole, half);
  return v.mul(v.mul(p, emit_power_of_two(out, v, half)), emit_power_of_two(out, v, rest));
}

/// x + x * P(x^2) near zero, sign(x) * (1 - exp(-Q(|x|))) beyond; from |x| = 4 on it is 1. Within 0.99 ulp of erf for
/// every f32; NaN takes the first branch.
std::string emit_erf(LlvmWriter& out, F32Vectors& v, std::string_view x) {
  const std::string magnitude = v.call("fabs", {x});
  const std::string square = v.mul(x, x);
  const std::string near = v.polynomial(
      square, {-5.96761703e-4f, 4.99119423e-3f, -2.67681349e-2f, 1.12819925e-1f, -3.76125336e-1f, 1.28379166e-1f});
  const std::string small = v.fma(near, x, x);

  const std::string inside = out.value("fcmp olt {} {}, {}", v.f32, magnitude, F32Vectors::number(4.0f));
  const std::string t = v.select(inside, magnitude, F32Vectors::number(4.0f));
  const std::string q = v.polynomial(t, {-1.72853470e-5f, 3.83197126e-4f, -3.88396438e-3f, 2.42546219e-2f,
                                         -1.06777877e-1f, -6.34846687e-1f, -1.28717512e-1f});
  const std::string minus_t = out.value("fneg {} {}", v.f32, t);
  const std::string tail = emit_exp_of_negative(out, v, v.fma(q, t, minus_t));
  const std::string rest = out.value("fsub {} {}, {}", v.f32, F32Vectors::number(1.0f), tail);
  const std::string large = v.call("copysign", {rest, x});
  const std::string beyond = out.value("fcmp ogt {} {}, {}", v.f32, magnitude, F32Vectors::number(0.927734375f));
  return v.select(beyond, large, small);
}

}  // namespace

std::string sleef_name(std::string_view c_name, DType dtype, int vector_bits) {
  if (vector_bits < 256 || (dtype != DType::f32 && dtype != DType::f64)) return "";
  const auto* found = std::ranges::find(sleef_functions, c_name, &SleefFunction::c_name);
  if (found == sleef_functions.end()) return "";
  const bool single = dtype == DType::f32;
  const std::string_view precision = single ? found->f32 : found->f64;
  if (precision.empty()) return "";
  return fmt::format("Sleef_{}{}{}{}{}", c_name, single ? "f" : "d", vector_bits / (single ? 32 : 64), precision,
                     vector_bits == 512 ? "avx512f" : "avx2");
}

bool is_inlined(std::string_view c_name, DType dtype, int vector_bits, VectorMath math) {
  if (dtype != DType::f32 || vector_bits < 256) return false;
  return c_name == "erf" || (c_name == "exp" && math == VectorMath::inlined);
}

std::string define_inline(LlvmWriter& out, std::string_view c_name, int64_t lanes, int vector_bits) {
  LlvmWriter body;
  F32Vectors vectors(body, lanes);
  const bool scalef = vector_bits == 512 && lanes == 16;
  const std::string result = c_name == "erf" ? emit_erf(body, vectors, "%x") : emit_exp(body, vectors, "%x", scalef);
  body.line("ret {} {}", vectors.f32, result);
  const std::string name = fmt::format("sinter.{}.{}", c_name, vectors.suffix);
  for (const std::string& declaration : body.declarations()) out.declare(declaration);
  out.define(fmt::format("define internal {} @{}({} %x) alwaysinline nounwind {{\n{}}}\n", vectors.f32, name,
                         vectors.f32, body.body()));
  return name;
}

}  // namespace sinter::codegen
