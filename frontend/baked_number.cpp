#include "frontend/baked_number.h"

namespace sinter::frontend {
namespace {

bool passes_number(const Plan& plan, const OptimizerLink& optimizers) {
  bool found = false;
  for (const auto& call : plan.calls) {
    for (const auto& arg : call.args) {
      ir::for_each_value(arg, [&](ir::ValueId value) {
        const Buffer& buffer = plan.buffers[value.index];
        found = found || (buffer.kind == BufferKind::content && optimizers.number_of_content(buffer.index) != nullptr);
      });
    }
  }
  return found;
}

}  // namespace

std::optional<GraphBreak> baked_number(const Plan& plan, const OptimizerLink& optimizers, Mode mode) {
  if (mode == Mode::Default || plan.backend != Backend::cuda || !passes_number(plan, optimizers)) return std::nullopt;
  return GraphBreak{.code = BreakCode::unsupported_op,
                    .op = {},
                    .where = {},
                    .reason = "a library call takes a number that changes on every call, which a CUDA Graph would keep",
                    .hint = "use Mode::Default"};
}

}  // namespace sinter::frontend
