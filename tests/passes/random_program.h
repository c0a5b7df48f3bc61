#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/ir/interpret.h"

namespace sinter::passes {

/// A captured graph that makes temporaries, looks at them through views and writes to them in place: whole, in part,
/// through pointwise ops, copies, fills and an op that no table knows; with an odd seed, to its inputs too. The same
/// for the same seed.
[[nodiscard]] ir::Graph random_program(uint64_t seed);

/// What a captured graph computes, run as eager runs it: storages are shared, writes happen in place. The outputs, then
/// what every input holds in the end.
[[nodiscard]] std::vector<ir::HostTensor> run_eagerly(const ir::Graph& program, const ir::Environment& environment);

/// Answers the ATen calls that are left of such a program once it is functional.
[[nodiscard]] std::vector<ir::HostTensor> answer_call(const ir::Node& node, std::span<const ir::HostTensor> values);

}  // namespace sinter::passes
