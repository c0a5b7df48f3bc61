#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Turns ATen calls into primitives, reductions and views where the op table or a structural rule knows how. Needs:
/// functional. Gives: functional.
///
/// Operands are cast to the computation dtype (halves compute in f32), the result to the observed dtype, with the
/// observed strides. A call stays a call where a kernel could not do the same: a dtype that no kernel touches, more
/// than one device (0-dim CPU tensors excepted), integer division that eager would refuse; and where ATen's kernel is
/// the better one (reduction_rules.h). Structural rules serve copies and conversions, constants, batch norm in
/// inference, and ops that reduce: sums and their kin, softmax, norms.
PassResult decompose(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
