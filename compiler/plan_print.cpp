#include "compiler/plan_print.h"

#include <fmt/format.h>

#include "compiler/ir/print.h"

namespace sinter {
namespace {

using namespace ir;

std::string name_of(BufferId id) { return id.valid() ? fmt::format("b{}", id.index) : "_"; }

std::string origin_of(const Buffer& buffer) {
  switch (buffer.kind) {
    case BufferKind::input:
      return fmt::format("input {}", buffer.index);
    case BufferKind::state:
      return fmt::format("state {}", buffer.index);
    case BufferKind::arena:
      return fmt::format("arena + {}", buffer.offset);
    case BufferKind::result:
      return "result";
    case BufferKind::output:
      return "output";
    case BufferKind::view:
      return fmt::format("view {} + {}", name_of(buffer.base), buffer.offset);
    case BufferKind::in_place:
      return fmt::format("in place of {}", name_of(buffer.base));
    case BufferKind::frozen:
      return "frozen";
  }
  return "unknown";
}

/// "a, b, c" from count items.
template <class Item>
std::string list_of(size_t count, Item&& item) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", item(i));
  return text;
}

std::string text_of(const Arg& arg) {
  if (const ValueId* value = arg.value()) return name_of(BufferId{value->index});
  const ArgList* list = arg.list();
  if (list == nullptr) return ir::to_string(arg);
  return fmt::format("[{}]", list_of(list->size(), [&](size_t i) { return text_of((*list)[i]); }));
}

class PlanPrinter {
 public:
  explicit PlanPrinter(const Plan& plan) : plan_(plan) {}

  std::string run() {
    text_ = fmt::format("plan @{} on {} arena {} {{\n", plan_.name, ir::to_string(plan_.device), plan_.arena_bytes);
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      const Buffer& buffer = plan_.buffers[i];
      line(fmt::format("b{} = {} : {}", i, origin_of(buffer), to_string(buffer.type, plan_.device)));
    }
    steps("once", plan_.once);
    steps("steps", plan_.steps);
    if (!plan_.written.empty()) {
      line(
          fmt::format("writes {}", list_of(plan_.written.size(), [&](size_t i) { return name_of(plan_.written[i]); })));
    }
    line(fmt::format("return {}", list_of(plan_.outputs.size(), [&](size_t i) { return name_of(plan_.outputs[i]); })));
    text_ += "}\n";
    return std::move(text_);
  }

 private:
  void line(std::string_view text) { text_ += fmt::format("  {}\n", text); }

  void steps(std::string_view title, const std::vector<Step>& list) {
    if (list.empty()) return;
    text_ += fmt::format("{}:\n", title);
    for (const Step& step : list) std::visit([&](const auto& s) { add(s); }, step);
  }

  void add(const Launch& launch) {
    const std::string args = list_of(launch.args.size(), [&](size_t i) {
      const KernelArg& arg = launch.args[i];
      return fmt::format("{}{}", arg.pass == KernelArg::Pass::pointer ? "" : "value of ", name_of(arg.buffer));
    });
    const bool known = launch.kernel < plan_.kernels.size();
    line(fmt::format("launch {} #{}({})", known ? plan_.kernels[launch.kernel].name : "kernel", launch.kernel, args));
  }

  void add(const RunCall& run) {
    const ExternCall& call = plan_.calls[run.call];
    const std::string results = list_of(call.results.size(), [&](size_t i) { return name_of(call.results[i]); });
    const std::string args = list_of(call.args.size(), [&](size_t i) { return text_of(call.args[i]); });
    const std::string module = call.module.empty() ? "" : fmt::format("  # {}", call.module);
    line(fmt::format("{}{}call {}({}){}", results, results.empty() ? "" : " = ", call.op, args, module));
  }

  void add(const BeginWrites&) { line("begin writes"); }
  void add(const Allocate& step) { line(fmt::format("allocate {}", name_of(step.buffer))); }
  void add(const Bind& step) { line(fmt::format("bind {}", name_of(step.buffer))); }
  void add(const Release& step) { line(fmt::format("release {}", name_of(step.buffer))); }

  const Plan& plan_;
  std::string text_;
};

}  // namespace

std::string print(const Plan& plan) { return PlanPrinter(plan).run(); }

}  // namespace sinter
