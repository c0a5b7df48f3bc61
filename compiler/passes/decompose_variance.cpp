#include <algorithm>
#include <array>

#include "compiler/ir/op_types.h"
#include "compiler/passes/moments.h"
#include "compiler/passes/reduced_call.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// The third argument of var.correction: what is taken from the count before dividing, 1 where it is None.
std::optional<double> correction_of(const CallSite& site) {
  if (site.args.size() < 3) return std::nullopt;
  const Arg& arg = site.args[2];
  if (arg.is_none()) return 1.0;
  if (const auto* integer = std::get_if<int64_t>(&arg.data)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&arg.data)) return *real;
  return std::nullopt;
}

/// As ATen: on the CPU in f64, which alone holds all squares of f32 and bf16.
DType dtype_of_sums(const Type& type) {
  const bool squares_fit_f64_alone = type.dtype == DType::f32 || type.dtype == DType::bf16;
  const bool on_cpu = type.device.kind == Device::Kind::cpu;
  return squares_fit_f64_alone && on_cpu ? DType::f64 : computation_dtype(type.dtype);
}

enum class Spread : uint8_t { variance, deviation };

/// var, std, var_mean, std_mean(self, dim, correction, keepdim): as ATen, where nothing is left of the count the
/// squares are divided by zero.
template <Spread spread>
std::optional<Results> spread_of(Graph& graph, const CallSite& site, const Arg& dims) {
  const auto correction = correction_of(site);
  const auto call = reduced_call(graph, site, dims);
  if (!call || !correction || !is_float(site.type().dtype)) return std::nullopt;

  PrimitiveBuilder build(graph, site, dtype_of_sums(site.type()));
  const auto count = static_cast<double>(elements_along(build.type(call->operand), call->dims));
  const Moments found = moments(build, build.wide(call->operand), call->dims);
  Results results(site.results.size());
  if (site.results[0].used) {
    Arg wide = build.op("ratio", {found.squares, {std::max(count - *correction, 0.0)}});
    if (spread == Spread::deviation) wide = build.op("sqrt", {wide});
    results[0] = build.result(wide, site.type());
  }
  if (results.size() > 1 && site.results[1].used) results[1] = build.result(found.mean, site.results[1].type);
  return results;
}

constexpr std::array variance_rows = {
    RuleRow{"aten::var.correction", along<spread_of<Spread::variance>, 1>},
    RuleRow{"aten::var_mean.correction", along<spread_of<Spread::variance>, 1>},
    RuleRow{"aten::std.correction", along<spread_of<Spread::deviation>, 1>},
    RuleRow{"aten::std_mean.correction", along<spread_of<Spread::deviation>, 1>},
};

}  // namespace

std::span<const RuleRow> variance_rules() { return variance_rows; }

}  // namespace sinter::passes
