#include "tests/llvm/harness.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <variant>

namespace sinter::test {

using ir::DType;
using ir::RefValue;

namespace {

runtime::LlvmJit& jit() {
  static runtime::LlvmJit instance;
  return instance;
}

/// Distance between neighbours at a value, for the dtype.
double unit_in_last_place(double value, DType dtype) {
  const int bits = dtype == DType::f64 ? 52 : dtype == DType::f32 ? 23 : dtype == DType::f16 ? 10 : 7;
  const int least = dtype == DType::f64 ? -1022 : dtype == DType::f16 ? -14 : -126;
  const int exponent = value == 0 ? least : std::max(std::ilogb(value), least);
  return std::ldexp(1.0, exponent - bits);
}

bool agree(const RefValue& got, const RefValue& want, DType dtype, Tolerance tolerance) {
  if (!ir::is_float(dtype)) return got == want;
  const double a = std::get<double>(got);
  const double b = std::get<double>(want);
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return !tolerance.signed_zero || a != 0 || std::signbit(a) == std::signbit(b);
  if (std::isinf(a) || std::isinf(b)) return false;
  return std::fabs(a - b) <= tolerance.ulps * unit_in_last_place(b, dtype);
}

std::string print(const RefValue& value) {
  return std::visit([](auto v) { return fmt::format("{}", v); }, value);
}

std::string inputs_at(const kernel::Kernel& kernel, const std::vector<Buffer>& params, int64_t element) {
  std::string text;
  for (size_t p = 0; p < params.size(); ++p) {
    if (kernel.params[p].role == kernel::Param::Role::output || element >= params[p].size()) continue;
    text += fmt::format(" param{}[{}]={}", p, element, print(params[p].get(element)));
  }
  return text;
}

}  // namespace

std::vector<int> host_widths() {
  std::vector<int> widths;
  for (const int width : {512, 256, 128}) {
    if (width <= runtime::host_vector_bits()) widths.push_back(width);
  }
  return widths;
}

void run_compiled(const kernel::Kernel& kernel, std::vector<Buffer>& params, int vector_bits) {
  const KernelSource source = codegen::generate_llvm(kernel, {.vector_bits = vector_bits});
  const auto compiled = jit().compile(source);
  std::vector<double> doubles(params.size());
  std::vector<int64_t> integers(params.size());
  std::vector<const void*> pointers;
  for (size_t p = 0; p < params.size(); ++p) {
    const bool host = kernel.params[p].role == kernel::Param::Role::host_scalar;
    const RefValue first = host ? params[p].get(0) : RefValue();
    if (host && std::holds_alternative<double>(first)) doubles[p] = std::get<double>(first);
    if (host && std::holds_alternative<int64_t>(first)) integers[p] = std::get<int64_t>(first);
    const void* passed = ir::is_float(params[p].dtype()) ? static_cast<const void*>(&doubles[p]) : &integers[p];
    pointers.push_back(host ? passed : params[p].data());
  }
  for (const int64_t& size : source.sizes) pointers.push_back(&size);
  const int64_t middle = source.numel / 3;
  (*compiled)(pointers.data(), 0, middle);
  (*compiled)(pointers.data(), middle, source.numel);
}

std::string compare_with_reference(const kernel::Kernel& kernel, const std::vector<Buffer>& params, int vector_bits,
                                   Tolerance tolerance) {
  std::vector<Buffer> got = params;
  std::vector<Buffer> want = params;
  run_compiled(kernel, got, vector_bits);
  run_reference(kernel, want);
  for (size_t p = 0; p < params.size(); ++p) {
    for (int64_t e = 0; e < want[p].size(); ++e) {
      if (agree(got[p].get(e), want[p].get(e), want[p].dtype(), tolerance)) continue;
      return fmt::format("{} at {} bits: param {} ({}) element {} is {}, want {};{}\n{}", kernel.name, vector_bits, p,
                         ir::name(want[p].dtype()), e, print(got[p].get(e)), print(want[p].get(e)),
                         inputs_at(kernel, params, e),
                         codegen::generate_llvm(kernel, {.vector_bits = vector_bits}).text);
    }
  }
  return "";
}

std::vector<Buffer> make_params(const kernel::Kernel& kernel) {
  constexpr int64_t room = 80;
  const std::vector<int64_t> sizes = param_sizes(kernel);
  std::vector<Buffer> params;
  for (size_t p = 0; p < sizes.size(); ++p) params.emplace_back(kernel.params[p].dtype, sizes[p] + room);
  return params;
}

}  // namespace sinter::test
