#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Joins matrix products that have one left operand into one product with the right operands side by side: queries,
/// keys and values of an attention, gate and up projection of an MLP. One product of many columns takes little longer
/// than each of them. Needs: functional. Gives: functional, with nodes that are dead.
///
/// On CUDA, with `freeze`, and not under eager numerics: cuBLAS may sum in another order for the wider product. Right
/// operands and biases have to depend on state alone, so that they are laid side by side once. That costs as much
/// memory as those weights take, for every plan, beside the weights themselves, which the program holds; hence no
/// weights are laid side by side that would take more than 256 MiB, nor more than 2 GiB in all, nor any in plans of
/// which there will be one for every size.
///
/// The old results become views of the wider one. Kernels read them where they lie, and so do the calls that are known
/// to take such operands without a copy (columns.cpp). A result that anything else uses is copied into memory of its
/// own. Of those that need a kernel for that alone at most one is joined with others: each copy costs about what a
/// product less saves. Results whose columns would begin at addresses that are no multiples of 16 stay apart.
PassResult merge_products(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
