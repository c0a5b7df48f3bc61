#include "compiler/passes/eager_peak.h"

#include <algorithm>
#include <vector>

#include "compiler/ir/memory.h"

namespace sinter::passes {

using namespace ir;

int64_t eager_peak_bytes(const Graph& captured) {
  const auto storage = [&](ValueId value) { return memory_of(captured, value); };
  const std::vector<NodeId>& order = captured.order();
  std::vector<size_t> last_use(captured.value_count(), 0);
  for (size_t i = 0; i < order.size(); ++i) {
    const Node& node = captured.node(order[i]);
    for (const Arg& arg : node.args) {
      for_each_value(arg, [&](ValueId value) { last_use[storage(value).index] = i; });
    }
    for (ValueId result : node.results) last_use[storage(result).index] = i;
  }
  for (ValueId output : captured.outputs) last_use[storage(output).index] = order.size();

  std::vector<int64_t> change(order.size() + 2, 0);  // by position: bytes taken there less bytes given back before it
  for (size_t i = 0; i < order.size(); ++i) {
    const Node& node = captured.node(order[i]);
    if (!node.as<Call>()) continue;
    for (ValueId result : node.results) {
      const Type& type = captured.type(result);
      if (storage(result) != result || !type.is_static()) continue;
      const int64_t bytes = type.span() * bytes_of(type.dtype);
      change[i] += bytes;
      change[last_use[result.index] + 1] -= bytes;
    }
  }
  int64_t live = 0;
  int64_t peak = 0;
  for (int64_t bytes : change) peak = std::max(peak, live += bytes);
  return peak;
}

}  // namespace sinter::passes
