#include "compiler/passes/normalized_call.h"

#include <algorithm>

#include "compiler/ir/op_types.h"

namespace sinter::passes {

using namespace ir;

namespace {

bool has_sizes_of_row(const Type& type, const Type& input, size_t dims) {
  return type.rank() == dims &&
         std::equal(type.sizes.begin(), type.sizes.end(), input.sizes.end() - static_cast<ptrdiff_t>(dims));
}

}  // namespace

std::optional<NormalizedCall> normalized_call(const Graph& graph, const CallSite& site, size_t input,
                                              std::initializer_list<size_t> optional) {
  const ArgList* shape = site.args[input + 1].list();
  if (shape == nullptr || !reads_tensor(graph, site.args[input]) || !writes_results(graph, site)) return std::nullopt;
  const Type& type = graph.type(*site.args[input].value());
  if (!is_float(type.dtype) || shape->empty() || shape->size() > type.rank()) return std::nullopt;
  for (const size_t position : optional) {
    const Arg& arg = site.args[position];
    if (!reads_optional_tensor(graph, arg)) return std::nullopt;
    if (!arg.is_none() && !has_sizes_of_row(graph.type(*arg.value()), type, shape->size())) return std::nullopt;
  }
  std::vector<uint32_t> dims = last_dims(shape->size(), type.rank());
  if (!worth_generating(site.context, type, dims)) return std::nullopt;
  const int64_t row = elements_along(type, dims);
  return NormalizedCall{site.args[input], std::move(dims), row, computation_dtype(type.dtype)};
}

}  // namespace sinter::passes
