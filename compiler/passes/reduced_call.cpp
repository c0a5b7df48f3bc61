#include "compiler/passes/reduced_call.h"

#include <algorithm>

namespace sinter::passes {

using namespace ir;

std::optional<ReducedCall> reduced_call(const Graph& graph, const CallSite& site, const Arg& dims, ResultSizes sizes) {
  if (!reads_tensor(graph, site.args[0]) || !writes_results(graph, site)) return std::nullopt;
  const Type& operand = graph.type(*site.args[0].value());
  auto named = named_dims(dims, operand.rank());
  if (!named || !worth_generating(site.context, operand, *named)) return std::nullopt;
  const bool follows = std::ranges::all_of(site.results, [&](const ObservedResult& result) {
    return sizes == ResultSizes::same ? result.type.sizes == operand.sizes
                                      : is_reduced(result.type.sizes, operand, *named);
  });
  if (!follows) return std::nullopt;
  return ReducedCall{site.args[0], *std::move(named)};
}

}  // namespace sinter::passes
