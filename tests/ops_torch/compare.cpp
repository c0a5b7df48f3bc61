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

/// Which values among its operands an exception holds for.
enum class Where : uint8_t {
  zero,
  integer_zero,  ///< where the result is an integer
  infinite,
  near_limit,  ///< at least a quarter of the result dtype's largest number: a sum may overflow
  huge,        ///< at least a quarter of its square root: a product may overflow
  tiny,        ///< the inverse of a huge one
  huge_or_tiny,
};

/// Elements where a compiled op may differ from eager, with the reason.
struct Exception {
  std::string_view op;  ///< without its overload
  Where where;
  std::string_view reason;
};

constexpr std::array exceptions{
    Exception{"aten::gelu", Where::infinite, "eager's gelu(inf) is NaN on the CPU, where the limit is inf"},
    Exception{"aten::pow", Where::infinite, "eager's pow(-inf, 0.5) is inf for halves and NaN for other floats"},
    Exception{"aten::pow", Where::zero, "eager's pow(-0, -0.5) is inf for f16 and -inf for other floats"},
    Exception{"aten::acosh", Where::huge, "SLEEF squares the argument, which overflows; eager calls libm"},
    Exception{"aten::asinh", Where::huge, "SLEEF squares the argument, which overflows; eager calls libm"},
    Exception{"aten::add", Where::near_limit, "alpha times the operand overflows where eager fuses the sum"},
    Exception{"aten::sub", Where::near_limit, "alpha times the operand overflows where eager fuses the sum"},
    Exception{"aten::rsub", Where::near_limit, "alpha times the operand overflows where eager fuses the sum"},
    Exception{"aten::addcmul", Where::huge, "the product overflows; eager multiplies in another order"},
    Exception{"aten::addcdiv", Where::huge_or_tiny, "the quotient overflows; eager multiplies in another order"},
    Exception{"aten::lerp", Where::near_limit, "the difference overflows; eager rounds it differently or fuses it"},
    Exception{"aten::floor_divide", Where::huge_or_tiny, "SLEEF's fmod is NaN where the quotient overflows"},
    Exception{"aten::div", Where::huge_or_tiny, "SLEEF's fmod is NaN where the quotient overflows"},
    Exception{"aten::fmod", Where::huge_or_tiny, "SLEEF's fmod is NaN where the quotient overflows"},
    Exception{"aten::remainder", Where::huge_or_tiny, "SLEEF's fmod is NaN where the quotient overflows"},
    Exception{"aten::remainder", Where::integer_zero, "x modulo 0 is undefined on the GPU, and throws on the CPU"},
    Exception{"aten::special_xlog1py", Where::tiny, "SLEEF's log1p of a denormal is zero, and inf * 0 is NaN"},
};

/// The largest number of the dtype in which a result's arithmetic is done; halves are done in float.
double largest(at::ScalarType result, Where where) {
  if (result == at::kDouble) return std::numeric_limits<double>::max();
  const bool rounds_half = result == at::kHalf && where == Where::near_limit;
  return rounds_half ? 65504.0 : static_cast<double>(std::numeric_limits<float>::max());
}

at::Tensor holds(Where where, const at::Tensor& size, at::ScalarType result) {
  const double limit = largest(result, where);
  const double root = std::sqrt(limit) / 4;
  switch (where) {
    case Where::integer_zero:
    case Where::zero:
      return size.eq(0);
    case Where::infinite:
      return size.isinf();
    case Where::near_limit:
      return size.ge(limit / 4);
    case Where::huge:
      return size.ge(root);
    case Where::tiny:
      return size.le(1 / root).logical_and(size.gt(0));
    case Where::huge_or_tiny:
      return size.ge(root).logical_or(size.le(1 / root).logical_and(size.gt(0)));
  }
  return {};
}

/// Elements for which one of the call's operands is such a value.
at::Tensor holds(Where where, const Call& call, const at::Tensor& eager, const std::vector<at::Tensor>& operands) {
  auto found = at::zeros(eager.sizes(), eager.options().dtype(at::kBool));
  if (at::isFloatingType(eager.scalar_type()) == (where == Where::integer_zero)) return found;
  for (const auto& arg : call.args) {
    const auto* operand = std::get_if<Operand>(&arg);
    if (operand == nullptr) continue;
    const auto size = operands[static_cast<size_t>(*operand)].to(at::kDouble).abs();
    found.logical_or_(holds(where, size, eager.scalar_type()));
  }
  return found;
}

at::Tensor excepted(const Call& call, const at::Tensor& eager, const std::vector<at::Tensor>& operands) {
  auto all = at::zeros(eager.sizes(), eager.options().dtype(at::kBool));
  const auto base = call.base_name();
  for (const auto& exception : exceptions) {
    if (exception.op == base) all.logical_or_(holds(exception.where, call, eager, operands));
  }
  return all;
}

/// Elements where the results agree.
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
  const auto disagreeing = agreeing(compiled, eager, exact).logical_or(excepted(call, eager, operands)).logical_not();
  if (!disagreeing.any().item<bool>()) return std::nullopt;
  return describe(call, compiled, eager, operands, disagreeing);
}

}  // namespace sinter::test
