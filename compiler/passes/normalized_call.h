#pragma once

#include <initializer_list>
#include <vector>

#include "compiler/passes/reduction_rules.h"

namespace sinter::passes {

/// A call that normalizes rows of its input: those along its last dims.
struct NormalizedCall {
  ir::Arg input;
  std::vector<uint32_t> dims;
  int64_t row = 0;  ///< elements of one
  ir::DType compute = ir::DType::f32;
};

/// The call as one that normalizes the argument at `input`, along as many dims as the list after it names, when kernels
/// can read and write what it does and are the place for it. `optional` are the positions of tensors over one row, each
/// of which may be None.
[[nodiscard]] std::optional<NormalizedCall> normalized_call(const ir::Graph& graph, const CallSite& site, size_t input,
                                                            std::initializer_list<size_t> optional);

}  // namespace sinter::passes
