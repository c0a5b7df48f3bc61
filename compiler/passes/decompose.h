#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Turns ATen calls into primitives where the op table or a structural rule knows how. Needs: functional. Gives:
/// functional.
///
/// Operands are cast to the computation dtype (halves compute in f32), the result to the observed dtype, with the
/// observed strides. A call stays a call where a kernel could not do the same: a dtype that no kernel touches, more
/// than one device (0-dim CPU tensors excepted), integer division that eager would refuse. Structural rules serve
/// copies and conversions, constants, and batch norm in inference.
PassResult decompose(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
