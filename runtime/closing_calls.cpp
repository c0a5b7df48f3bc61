#include "runtime/closing_calls.h"

#include <algorithm>
#include <span>
#include <variant>

#include "runtime/program.h"

namespace sinter::runtime {
namespace {

bool holds(std::span<const BufferId> buffers, BufferId buffer) {
  return std::ranges::find(buffers, buffer) != buffers.end();
}

/// True for memory of the plan's device whose bytes are known.
bool lies_on_device(const Plan& plan, BufferId buffer) {
  const ir::Type& type = plan.buffers[buffer.index].type;
  return type.device == plan.device && ir::bytes_of(type.dtype) > 0;
}

class Finder {
 public:
  explicit Finder(const Plan& plan) : plan_(plan) {
    for (const BufferId output : plan.outputs) outputs_.push_back(root_of(plan, output).buffer);
  }

  ClosingCalls run() {
    if (!plan_.written.empty()) return {};
    size_t end = plan_.steps.size();
    while (end > 0 && may_close(plan_.steps[end - 1])) --end;
    const std::span before(plan_.steps.data(), end);
    const bool works = std::ranges::any_of(before, [](const Step& step) {
      return std::holds_alternative<Launch>(step) || std::holds_alternative<RunCall>(step);
    });
    if (!works) return {};
    std::ranges::reverse(found_.calls);
    return std::move(found_);
  }

 private:
  /// True for a step that may run behind the graph, before those that were seen to.
  bool may_close(const Step& step) {
    if (const auto* bind = std::get_if<Bind>(&step)) return !holds(found_.operands, bind->buffer);
    const auto* run = std::get_if<RunCall>(&step);
    if (run == nullptr) return std::holds_alternative<Release>(step);
    const ExternCall& call = plan_.calls[run->call];
    const bool known = call.op.starts_with("aten::") || call.op.starts_with("sinter::");
    if (!known || call.random || call.impure || !gives_large_outputs(call)) return false;
    std::vector<BufferId> operands;
    for_each_argument(call, [&](BufferId operand) { operands.push_back(operand); });
    if (!std::ranges::all_of(operands, [&](BufferId id) { return lies_on_device(plan_, id); })) return false;
    found_.calls.push_back(run->call);
    found_.operands.insert(found_.operands.end(), operands.begin(), operands.end());
    return true;
  }

  [[nodiscard]] bool gives_large_outputs(const ExternCall& call) const {
    int64_t bytes = 0;
    for (const BufferId result : call.results) {
      if (!result.valid()) continue;
      const bool known = lies_on_device(plan_, result) && plan_.buffers[result.index].kind == BufferKind::result;
      if (!known || !holds(outputs_, result) || holds(found_.operands, result)) return false;
      bytes += span_bytes(plan_.buffers[result.index].type);
    }
    return bytes >= least_closing_bytes;
  }

  const Plan& plan_;
  std::vector<BufferId> outputs_;  ///< roots
  ClosingCalls found_;
};

}  // namespace

bool ClosingCalls::contains(uint32_t call) const { return std::ranges::find(calls, call) != calls.end(); }

ClosingCalls closing_calls(const Plan& plan) { return Finder(plan).run(); }

}  // namespace sinter::runtime
