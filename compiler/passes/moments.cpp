#include "compiler/passes/moments.h"

#include "compiler/passes/reduction_rules.h"

namespace sinter::passes {

using namespace ir;

Moments moments(PrimitiveBuilder& build, const Arg& x, const std::vector<uint32_t>& dims) {
  const auto count = static_cast<double>(elements_along(build.type(x), dims));
  const Arg mean = build.op("ratio", {build.reduce("sum", x, dims), {count}});
  // The other way round it has the same square. What is squared and what is normalized are two values then, and where
  // they are computed in two kernels none stores a difference for the other.
  const Arg reversed = build.op("sub", {mean, x});
  const Arg squares = build.reduce("sum", build.op("mul", {reversed, reversed}), dims);
  return {mean, build.op("sub", {x, mean}), squares};
}

Arg inverse_deviation(PrimitiveBuilder& build, const Arg& squares, int64_t count, double eps) {
  const Arg variance = build.op("ratio", {squares, {static_cast<double>(count)}});
  return build.op("rsqrt", {build.op("add", {variance, {eps}})});
}

}  // namespace sinter::passes
