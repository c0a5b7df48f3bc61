#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/plan.h"
#include "runtime/closing_calls.h"

namespace sinter::runtime {

/// How the tensors at the border of a recorded CUDA Graph reach it. Addresses that only generated kernels take are
/// re-pointed on every replay; what an extern call takes is baked, so its tensors are copied in or out. An input in
/// none of the lists is taken where it lies. All lists hold roots (see root_of) unless they say otherwise.
struct GraphLayout {
  std::string refusal;  ///< why the plan cannot be recorded: "aten::mul reads a tensor on cpu"; empty when it can
  bool draws = false;   ///< calls draw random numbers: their generators take part in every replay

  std::vector<BufferId> moving_inputs;   ///< read by kernels alone: re-pointed
  std::vector<BufferId> copied_inputs;   ///< read by extern calls: copied to an address of the graph's own
  std::vector<BufferId> moving_outputs;  ///< `output` buffers kernels alone touch: fresh and re-pointed
  std::vector<BufferId> copied_outputs;  ///< outputs in memory of the graph's own: copied to fresh tensors
  std::vector<BufferId> blank_outputs;   ///< outputs that hold nothing: fresh tensors
  std::vector<BufferId> output_binds;    ///< views among the outputs, in the order to bind them in the caller's frame
  std::vector<BufferId> scalar_binds;    ///< the same for host scalars that are views of inputs or state

  ClosingCalls closing;                 ///< run behind the graph: neither what they read nor what they give is copied
  std::vector<BufferId> closing_binds;  ///< views among their operands, in the order to bind them in the caller's frame
  std::vector<BufferId> lent;           ///< their operands in memory of the graph's own
  std::vector<BufferId> kept;           ///< their operands among frozen buffers
};

/// True for a result that tells a call's gradient what the call drew: on the CPU where the call runs by itself, on the
/// device where it is recorded. Where the call draws nothing, it holds nothing.
[[nodiscard]] bool says_what_it_drew(const ExternCall& call, size_t result);

/// `steady` are inputs that the graph may take where they lie instead of copying them: it is replayed for no other
/// addresses.
[[nodiscard]] GraphLayout lay_out_graph(const Plan& plan, std::span<const BufferId> steady = {});

}  // namespace sinter::runtime
