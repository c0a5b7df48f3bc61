#include "compiler/passes/live_bytes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "compiler/ir/memory.h"
#include "compiler/passes/frozen.h"
#include "compiler/passes/liveness.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// Memory that a node of the graph makes, and the positions in the order from which and to which it lives.
struct LiveValue {
  ValueId value;
  size_t first = 0;
  size_t last = 0;
  int64_t bytes = 0;
};

std::vector<LiveValue> live_values(const Graph& graph, const std::function<bool(NodeId)>& counts) {
  const std::vector<NodeId>& order = graph.order();
  const std::vector<size_t> last_use = last_uses(graph);
  std::vector<LiveValue> values;
  for (size_t i = 0; i < order.size(); ++i) {
    if (!counts(order[i])) continue;
    for (const ValueId result : graph.node(order[i]).results) {
      if (memory_of(graph, result) != result) continue;
      values.push_back({result, i, last_use[result.index], memory_bytes(graph.type(result))});
    }
  }
  return values;
}

struct Peak {
  size_t position = 0;
  int64_t bytes = 0;
};

Peak peak_of(const std::vector<LiveValue>& values, size_t positions) {
  std::vector<int64_t> change(positions + 2, 0);  // by position: bytes taken there less bytes given back before it
  for (const LiveValue& value : values) {
    change[value.first] += value.bytes;
    change[value.last + 1] -= value.bytes;
  }
  Peak peak;
  int64_t live = 0;
  for (size_t i = 0; i < change.size(); ++i) {
    live += change[i];
    if (live > peak.bytes) peak = {i, live};
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
  const auto calls = [&](NodeId id) { return captured.node(id).as<Call>() != nullptr; };
  return peak_of(live_values(captured, calls), captured.order().size()).bytes;
}

std::vector<SegmentOwner> owners_at_peak(const Graph& fused, bool freeze) {
  const std::vector<bool> frozen = frozen_nodes(fused, freeze);
  const auto made_in_call = [&](NodeId id) {
    const Node& node = fused.node(id);
    return !frozen[id.index] && (node.as<Call>() != nullptr || node.as<Fused>() != nullptr);
  };
  const size_t end = fused.order().size();
  const std::vector<LiveValue> values = live_values(fused, made_in_call);
  const size_t peak = peak_of(values, end).position;
  std::map<std::tuple<SegmentOwner::Kind, std::string, std::string>, int64_t> sums;
  for (const LiveValue& value : values) {
    if (value.first > peak || value.last < peak || value.bytes == 0) continue;
    const bool generated = fused.producer(value.value).as<Fused>() != nullptr;
    const Scope scope = scope_of(fused, value.value);
    const auto kind = value.last == end ? SegmentOwner::Kind::output
                      : generated       ? SegmentOwner::Kind::temporary
                                        : SegmentOwner::Kind::library_result;
    sums[{kind, scope.module, scope.source}] += value.bytes;
  }
  std::vector<SegmentOwner> owners;
  for (const auto& [key, bytes] : sums) {
    owners.push_back(
        {.kind = std::get<0>(key), .module = std::get<1>(key), .source = std::get<2>(key), .bytes = bytes});
  }
  std::ranges::stable_sort(owners, std::greater(), &SegmentOwner::bytes);
  return owners;
}

}  // namespace sinter::passes
