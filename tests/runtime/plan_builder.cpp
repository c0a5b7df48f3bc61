#include "tests/runtime/plan_builder.h"

namespace sinter::runtime::fake {

uint32_t PlanBuilder::add_call(std::string op, const std::vector<BufferId>& args, std::vector<BufferId> results) {
  ExternCall call;
  call.op = std::move(op);
  for (BufferId arg : args) call.args.emplace_back().data = ir::ValueId{arg.index};
  call.results = std::move(results);
  plan.calls.push_back(std::move(call));
  return static_cast<uint32_t>(plan.calls.size() - 1);
}

}  // namespace sinter::runtime::fake
