#pragma once

#include <vector>

#include "compiler/passes/primitive_builder.h"

namespace sinter::passes {

/// What variances and norms are made of. All in the computation dtype, the dims of the rows kept.
struct Moments {
  ir::Arg mean;
  ir::Arg difference;  ///< of every element from the mean of its row
  ir::Arg squares;     ///< sum of the squared differences
};

/// Mean and spread of the rows of `x` along `dims`. In two passes, so that a mean far from zero does not cancel;
/// divided by the count, so that rows of one number have that number as their mean and no spread.
[[nodiscard]] Moments moments(PrimitiveBuilder& build, const ir::Arg& x, const std::vector<uint32_t>& dims);

/// 1 / sqrt(squares / count + eps)
[[nodiscard]] ir::Arg inverse_deviation(PrimitiveBuilder& build, const ir::Arg& squares, int64_t count, double eps);

}  // namespace sinter::passes
