#include "compiler/passes/eager_peak.h"

#include <algorithm>
#include <vector>

#include "compiler/ir/memory.h"
#include "compiler/passes/liveness.h"

namespace sinter::passes {

using namespace ir;

int64_t eager_peak_bytes(const Graph& captured) {
  const std::vector<NodeId>& order = captured.order();
  const std::vector<size_t> last_use = last_uses(captured);
  std::vector<int64_t> change(order.size() + 2, 0);  // by position: bytes taken there less bytes given back before it
  for (size_t i = 0; i < order.size(); ++i) {
    const Node& node = captured.node(order[i]);
    if (!node.as<Call>()) continue;
    for (ValueId result : node.results) {
      if (memory_of(captured, result) != result) continue;
      const int64_t bytes = memory_bytes(captured.type(result));
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
