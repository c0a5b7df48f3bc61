#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Products that a ReLU or a tanh GELU follows, or that are added to a value in memory, after a bias as there is any,
/// are one `sinter::product`, whose library computes that before it stores: the product alone is neither stored nor
/// read. Rounds once where eager rounds the product, too. Needs and gives: functional, not yet decomposed. On CUDA, for
/// halves under Numerics::fast. A sum that takes less time than the library's look at another operand stays with the
/// kernel that it fuses with.
PassResult product_epilogues(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
