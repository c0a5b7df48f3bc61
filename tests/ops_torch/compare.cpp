#include "compare.h"

#include <ATen/ops/nonzero.h>

#include <array>
#include <cmath>
#include <limits>
#include <sstream>

namespace sinter::test {
namespace {

struct Tolerance {
  double relative;
  double absolute;
};

Tolerance tolerance(at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf:
      return {1e-3, 1e-5};
    case at::kBFloat16:
      return {1.6e-2, 1e-5};
    case at::kFloat:
      return {1.3e-6, 1e-5};
    default:
      return {1e-7, 1e-7};
  }
}

/// A call, what eager gave for it, and what compiled did.
struct Given {
  const Call& call;
  const at::Tensor& compiled;
  const at::Tensor& eager;
  const std::vector<at::Tensor>& operands;

  /// The argument at a position, in double, by element of the result.
  [[nodiscard]] at::Tensor arg(size_t position) const {
    const auto& given = call.args.at(position);
    const auto options = eager.options().dtype(at::kDouble);
    if (const auto* operand = std::get_if<Operand>(&given))
      return operands[static_cast<size_t>(*operand)].to(at::kDouble).expand_as(eager);
    return at::full(eager.sizes(), std::get<c10::IValue>(given).toScalar(), options);
  }
  [[nodiscard]] at::Tensor nowhere() const { return at::zeros(eager.sizes(), eager.options().dtype(at::kBool)); }
};

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Elements that may differ, because ATen itself gives several answers for such operands: by dtype, or by whether an
/// element is computed in a vector or alone. `accepts` holds where the operands are such and compiled gives one of
/// them.
struct Exception {
  std::string_view op;  ///< without its overload
  c10::DeviceType device;
  std::string_view reason;
  at::Tensor (*accepts)(const Given& given);
};

/// Whether compiled gives `value` rounded to its dtype.
at::Tensor gives(const Given& given, const at::Tensor& value) {
  const auto found = given.compiled.to(at::kDouble);
  const auto wanted = value.to(given.compiled.scalar_type()).to(at::kDouble);
  return found.eq(wanted).logical_or(found.isnan().logical_and(wanted.isnan()));
}

/// A sum with a product, rounded once, where the product alone is beyond the result's dtype, a half.
at::Tensor sum_beyond_half(const Given& given, const at::Tensor& term, const at::Tensor& product) {
  if (!at::isReducedFloatingType(given.compiled.scalar_type())) return given.nowhere();
  const auto beyond = product.to(given.compiled.scalar_type()).isinf().logical_and(product.isfinite());
  return beyond.logical_and(gives(given, term.add(product)));
}

/// NaN where the quotient of finite operands is beyond the dtype of the computation.
at::Tensor quotient_overflows(const Given& given) {
  const auto quotient = given.arg(0).div(given.arg(1)).abs();
  const bool wide = given.compiled.scalar_type() == at::kDouble;
  const double limit =
      wide ? std::numeric_limits<double>::max() : static_cast<double>(std::numeric_limits<float>::max());
  return quotient.gt(limit).logical_and(given.arg(0).isfinite()).logical_and(given.compiled.isnan());
}

/// What lets a gradient pass is asked as a condition for it in vectors, and as one against it alone.
at::Tensor passes_nan(const Given& given) { return given.arg(1).isnan().logical_and(gives(given, given.arg(0))); }

/// The gradient of tanh, from a result that no tanh gives: its square is beyond a half.
at::Tensor square_beyond_half(const Given& given) {
  if (!at::isReducedFloatingType(given.compiled.scalar_type())) return given.nowhere();
  const auto square = given.arg(1).square();
  const auto beyond = square.to(given.compiled.scalar_type()).isinf().logical_and(square.isfinite());
  return beyond.logical_and(gives(given, given.arg(0).mul(square.neg().add(1))));
}

/// 0 times a gradient that is beyond the dtype of the result.
at::Tensor gradient_beyond_result(const Given& given) {
  const auto beyond = given.arg(0).to(given.compiled.scalar_type()).isinf().logical_and(given.arg(0).isfinite());
  return beyond.logical_and(given.compiled.eq(0)).logical_and(given.eager.isnan());
}

/// Both are zero.
at::Tensor zeros(const Given& given) { return given.compiled.eq(0).logical_and(given.eager.eq(0)); }

/// Of two zeros.
at::Tensor of_zeros(const Given& given) { return given.arg(0).eq(0).logical_and(zeros(given)); }

at::Tensor of_zeros_in_bf16(const Given& given) {
  return given.eager.scalar_type() == at::kBFloat16 ? of_zeros(given) : given.nowhere();
}

constexpr std::array exceptions{
    Exception{"aten::maximum", at::kCPU, "of zeros the second in vectors and the first alone", of_zeros},
    Exception{"aten::minimum", at::kCPU, "of zeros the second in vectors and the first alone", of_zeros},
    Exception{"aten::fmax", at::kCPU, "of zeros the second for bf16 and the first for other floats", of_zeros_in_bf16},
    Exception{"aten::fmin", at::kCPU, "of zeros the second for bf16 and the first for other floats", of_zeros_in_bf16},
    Exception{"aten::clamp", at::kCPU, "of zeros the bound in vectors and the number alone", of_zeros},
    Exception{"aten::clamp_min", at::kCPU, "of zeros the bound in vectors and the number alone", of_zeros},
    Exception{"aten::clamp_max", at::kCPU, "of zeros the bound in vectors and the number alone", of_zeros},
    Exception{"aten::softshrink", at::kCPU, "0 in vectors and a zero of the number's sign alone", zeros},
    Exception{"aten::lerp", at::kCPU, "from zero to zero one sign in vectors and another alone", zeros},
    Exception{"aten::add", at::kCPU, "halves: the product is rounded alone and not in vectors",
              [](const Given& g) { return sum_beyond_half(g, g.arg(0), g.arg(2).mul(g.arg(1))); }},
    Exception{"aten::sub", at::kCPU, "halves: the product is rounded alone and not in vectors",
              [](const Given& g) { return sum_beyond_half(g, g.arg(0), g.arg(2).mul(g.arg(1)).neg()); }},
    Exception{"aten::rsub", at::kCPU, "halves: the product is rounded alone and not in vectors",
              [](const Given& g) { return sum_beyond_half(g, g.arg(1), g.arg(2).mul(g.arg(0)).neg()); }},
    Exception{"aten::gelu", at::kCPU, "gelu(inf) is NaN in vectors and inf alone",
              [](const Given& g) { return g.arg(0).eq(infinity).logical_and(g.compiled.eq(infinity)); }},
    Exception{"aten::gelu_backward", at::kCPU, "the tail of gelu is 0 in vectors, also of an infinite gradient",
              [](const Given& g) {
                const auto nan = g.arg(0).isinf().logical_and(g.eager.isnan());
                return nan.logical_or(zeros(g)).logical_and(g.arg(1).lt(-8));
              }},
    Exception{"aten::hardtanh_backward", at::kCPU, "of NaN 0 in vectors and the gradient alone", passes_nan},
    Exception{"aten::hardshrink_backward", at::kCPU, "of NaN 0 in vectors and the gradient alone", passes_nan},
    Exception{"aten::softshrink_backward", at::kCPU, "of NaN 0 in vectors and the gradient alone", passes_nan},
    Exception{"aten::hardswish_backward", at::kCPU, "of NaN NaN in vectors and the gradient alone", passes_nan},
    Exception{"aten::fmod", at::kCPU, "SLEEF's fmod, in vectors, is NaN where the quotient overflows",
              [](const Given& g) { return quotient_overflows(g); }},
    Exception{"aten::remainder", at::kCPU, "SLEEF's fmod, in vectors, is NaN where the quotient overflows",
              [](const Given& g) { return quotient_overflows(g); }},
    Exception{"aten::tanh_backward", at::kCUDA, "ATen rounds the square of a half to one", square_beyond_half},
    Exception{"aten::mish_backward", at::kCUDA, "ATen takes the gradient in the dtype of the input first",
              gradient_beyond_result},
    Exception{"aten::remainder", at::kCUDA, "x modulo 0 is undefined for integers",
              [](const Given& g) { return at::isFloatingType(g.eager.scalar_type()) ? g.nowhere() : g.arg(1).eq(0); }},
};

at::Tensor excepted(const Given& given) {
  auto all = given.nowhere();
  const auto base = given.call.base_name();
  for (const auto& exception : exceptions) {
    if (exception.op == base && exception.device == given.eager.device().type())
      all.logical_or_(exception.accepts(given));
  }
  return all;
}

/// Elements where two zeros have different signs: of operators on floats, on the CPU.
at::Tensor other_zeros(const Given& given) {
  if (!given.eager.is_cpu() || !at::isFloatingType(given.operands[0].scalar_type())) return given.nowhere();
  return zeros(given).logical_and(given.compiled.signbit().ne(given.eager.signbit()));
}

/// Elements where the numbers agree.
at::Tensor agreeing(const at::Tensor& compiled, const at::Tensor& eager, const std::optional<at::Tensor>& exact) {
  if (!at::isFloatingType(eager.scalar_type())) return compiled.eq(eager);
  const auto [relative, absolute] = tolerance(eager.scalar_type());
  const auto a = compiled.to(at::kDouble);
  const auto b = eager.to(at::kDouble);
  const auto distance = a.sub(b).abs();
  auto agree =
      a.eq(b).logical_or(distance.le(b.abs().mul(relative).add(absolute)).logical_and(b.isinf().logical_not()));
  if (exact) {
    const auto better = a.sub(*exact).abs().le(b.sub(*exact).abs().mul(2)).logical_and(exact->isinf().logical_not());
    agree = agree.logical_or(better.logical_and(a.isfinite()));
  }
  return agree.logical_or(a.isnan().logical_and(b.isnan())).logical_and(a.isnan().eq(b.isnan()));
}

double at_index(const at::Tensor& tensor, int64_t flat) {
  return tensor.to(at::kDouble).flatten()[flat].item<double>();
}

std::string describe(const Call& call, const at::Tensor& compiled, const at::Tensor& eager,
                     const std::vector<at::Tensor>& operands, const at::Tensor& disagreeing) {
  std::ostringstream out;
  out.precision(17);
  const auto places = disagreeing.flatten().nonzero().flatten();
  out << places.numel() << " of " << eager.numel() << " elements differ:";
  for (int64_t i = 0; i < std::min<int64_t>(places.numel(), 8); ++i) {
    const auto place = places[i].item<int64_t>();
    out << "\n    [" << place << "] compiled " << at_index(compiled, place) << ", eager " << at_index(eager, place)
        << " for";
    for (const auto& arg : call.args) {
      const auto* operand = std::get_if<Operand>(&arg);
      if (operand == nullptr) continue;
      const auto& tensor = operands[static_cast<size_t>(*operand)];
      out << " " << at_index(tensor.expand_as(eager), place);
    }
  }
  return out.str();
}

}  // namespace

std::optional<std::string> difference(const Call& call, const at::Tensor& compiled, const at::Tensor& eager,
                                      const std::optional<at::Tensor>& exact, const std::vector<at::Tensor>& operands) {
  std::ostringstream form;
  if (compiled.scalar_type() != eager.scalar_type())
    form << "dtype " << compiled.scalar_type() << ", eager has " << eager.scalar_type();
  if (compiled.sizes() != eager.sizes()) form << " sizes " << compiled.sizes() << ", eager has " << eager.sizes();
  if (compiled.strides() != eager.strides())
    form << " strides " << compiled.strides() << ", eager has " << eager.strides();
  if (!form.str().empty()) return form.str();
  if (eager.numel() == 0) return std::nullopt;
  const Given given{call, compiled, eager, operands};
  const auto agree = agreeing(compiled, eager, exact).logical_and(other_zeros(given).logical_not());
  const auto disagreeing = agree.logical_or(excepted(given)).logical_not();
  if (!disagreeing.any().item<bool>()) return std::nullopt;
  return describe(call, compiled, eager, operands, disagreeing);
}

}  // namespace sinter::test
