#include "compiler/passes/live_bytes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "compiler/ir/memory.h"
#include "compiler/passes/liveness.h"

namespace sinter::passes {
namespace {

using namespace ir;

struct Peak {
  size_t step = 0;
  int64_t bytes = 0;
};

Peak peak_of(const std::vector<LiveValue>& values) {
  std::map<size_t, int64_t> change;  // by step: bytes taken there less bytes given back before it
  for (const LiveValue& value : values) {
    change[value.first] += value.bytes;
    const size_t end = value.last + 1;  // 0 for what is never given back
    if (end > 0) change[end] -= value.bytes;
  }
  Peak peak;
  int64_t live = 0;
  for (const auto& [step, bytes] : change) {
    live += bytes;
    if (live > peak.bytes) peak = {step, live};
  }
  return peak;
}

/// The scope of the operator that computes a value; of a kernel's, that of the operator inside of it.
Scope scope_of(const Graph& graph, ValueId value) {
  const Node& node = graph.producer(value);
  if (const auto* fused = node.as<Fused>()) {
    const auto output = std::ranges::find(node.results, value) - node.results.begin();
    const Graph& body = *fused->body;
    const Node& inside = body.producer(body.outputs.at(static_cast<size_t>(output)));
    return inside.scope.valid() ? body.scope(inside.scope) : Scope{};
  }
  return node.scope.valid() ? graph.scope(node.scope) : Scope{};
}

}  // namespace

int64_t eager_peak_bytes(const Graph& captured) {
  const std::vector<NodeId>& order = captured.order();
  const std::vector<size_t> last_use = last_uses(captured);
  std::vector<LiveValue> values;
  for (size_t i = 0; i < order.size(); ++i) {
    const Node& node = captured.node(order[i]);
    if (!node.as<Call>()) continue;
    for (const ValueId result : node.results) {
      if (memory_of(captured, result) != result) continue;
      values.push_back(
          {.value = result, .first = i, .last = last_use[result.index], .bytes = memory_bytes(captured.type(result))});
    }
  }
  return peak_of(values).bytes;
}

std::vector<SegmentOwner> owners_at_peak(const Graph& graph, const std::vector<LiveValue>& values) {
  const size_t peak = peak_of(values).step;
  std::map<std::tuple<SegmentOwner::Kind, std::string, std::string>, int64_t> sums;
  for (const LiveValue& value : values) {
    if (value.first > peak || value.last < peak || value.bytes == 0) continue;
    const Scope scope = scope_of(graph, value.value);
    sums[{value.kind, scope.module, scope.source}] += value.bytes;
  }
  std::vector<SegmentOwner> owners;
  for (const auto& [key, bytes] : sums) {
    const auto& [kind, module, source] = key;
    owners.push_back({.kind = kind, .module = module, .source = source, .bytes = bytes});
  }
  std::ranges::stable_sort(owners, std::greater(), &SegmentOwner::bytes);
  return owners;
}

}  // namespace sinter::passes
