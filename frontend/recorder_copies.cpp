#include <algorithm>

#include "compiler/ir/memory.h"
#include "frontend/recorder.h"

namespace sinter::frontend {
namespace {

constexpr const char* kCopy = "aten::_to_copy";

const ir::Call* copy_to_host(const ir::Node& node) {
  const auto* call = node.as<ir::Call>();
  return call != nullptr && call->read && call->op == kCopy ? call : nullptr;
}

/// What a trace's results, reads and effects depend on, by the memory it lies in.
class Liveness {
 public:
  explicit Liveness(const ir::Graph& graph) : graph_(graph), live_(graph.value_count()) {
    for (const ir::ValueId output : graph.outputs) mark(output);
  }

  /// From the last node to the first. True for a node that something depends on.
  bool visit(const ir::Node& node) {
    if (!is_needed(node)) return false;
    for (const ir::Arg& arg : node.args) ir::for_each_value(arg, [&](ir::ValueId value) { mark(value); });
    return true;
  }

 private:
  void mark(ir::ValueId value) { live_[ir::memory_of(graph_, value).index] = true; }
  [[nodiscard]] bool is_live(ir::ValueId value) const { return live_[ir::memory_of(graph_, value).index]; }
  [[nodiscard]] bool outlives(ir::ValueId value) const {
    return graph_.producer(ir::memory_of(graph_, value)).as<ir::Call>() == nullptr;
  }

  [[nodiscard]] bool is_needed(const ir::Node& node) const {
    const auto live = [this](ir::ValueId value) { return is_live(value); };
    if (std::any_of(node.results.begin(), node.results.end(), live)) return true;
    const auto* call = node.as<ir::Call>();
    if (call == nullptr || copy_to_host(node) != nullptr) return false;
    if (call->read || call->impure) return true;
    bool writes = false;
    for (const uint32_t position : call->mutates) {
      ir::for_each_value(node.args[position],
                         [&](ir::ValueId value) { writes = writes || is_live(value) || outlives(value); });
    }
    return writes;
  }

  const ir::Graph& graph_;
  std::vector<bool> live_;
};

}  // namespace

/// True for a copy to the CPU that a replay can make in its place: what it gives is new memory, and the call waits for
/// it as eager's does.
bool Recorder::copies_to_host(const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments) {
  if (facts.name != kCopy || !arguments[0].toTensor().is_cuda()) return false;
  const c10::IValue& device = arguments[3];
  return device.isDevice() && device.toDevice().is_cpu();
}

/// A copy that no operator and no result needs was made to be looked at by the program itself, which no replay sees.
void Recorder::finish_copies() {
  if (!recording_) return;
  const ir::Graph& graph = trace_.graph;
  Liveness liveness(graph);
  for (auto id = graph.order().rbegin(); id != graph.order().rend(); ++id) {
    const ir::Node& node = graph.node(*id);
    if (liveness.visit(node) || copy_to_host(node) == nullptr) continue;
    return fail({BreakCode::host_read,
                 kCopy,
                 {},
                 "copies a CUDA tensor to the CPU, where no operator and no result uses it",
                 "read numbers with item(), or look at the copy in sinter::host"},
                {}, {});
  }
}

}  // namespace sinter::frontend
