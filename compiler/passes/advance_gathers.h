#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Few elements of what is computed from tensors in memory are gathered from those, and computed then: the log
/// probabilities of classes are the scores of classes less what their rows have in common. What is computed need not
/// be stored for the gather, which can only read memory. Each element is computed and rounded as before. Where the
/// gather takes a quarter of the elements or fewer. Needs and gives: functional. Static sizes only.
PassResult advance_gathers(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
