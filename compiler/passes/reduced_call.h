#pragma once

#include <cstdint>
#include <vector>

#include "compiler/passes/primitive_builder.h"
#include "compiler/passes/reduction_rules.h"

namespace sinter::passes {

/// A call that reduces its first argument.
struct ReducedCall {
  ir::Arg operand;
  std::vector<uint32_t> dims;
};

/// Sizes of the results of such a call.
enum class ResultSizes : uint8_t {
  reduced,  ///< without the dims, or with 1 for each
  same,     ///< those of the operand
};

/// The call as one whose first argument is reduced along the dims that an argument names, when kernels can read and
/// write what it does and are the place for it.
[[nodiscard]] std::optional<ReducedCall> reduced_call(const ir::Graph& graph, const CallSite& site, const ir::Arg& dims,
                                                      ResultSizes sizes = ResultSizes::reduced);

/// A rule for calls of one schema, told what they reduce along.
using DimsRule = std::optional<Results> (*)(ir::Graph&, const CallSite&, const ir::Arg& dims);

/// The rule for calls that name the dims at a schema position.
template <DimsRule rule, size_t position>
std::optional<Results> along(ir::Graph& graph, const CallSite& site) {
  return site.args.size() > position ? rule(graph, site, site.args[position]) : std::nullopt;
}

/// The rule for calls that reduce along all dims.
template <DimsRule rule>
std::optional<Results> whole(ir::Graph& graph, const CallSite& site) {
  return site.args.empty() ? std::nullopt : rule(graph, site, ir::Arg{});
}

}  // namespace sinter::passes
