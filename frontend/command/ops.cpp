#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "compiler/support/errors.h"
#include "frontend/command/commands.h"
#include "frontend/command/op_audit.h"

namespace sinter::command {
namespace {

using frontend::Coverage;

constexpr std::array<std::pair<Coverage, const char*>, 7> kMeanings{{
    {Coverage::fused, "a primitive of generated kernels"},
    {Coverage::decomposed, "becomes primitives and views"},
    {Coverage::opened, "only calls others, which are captured in its place"},
    {Coverage::called, "a library call in the graph"},
    {Coverage::read, "a host read: the graph is cut there and goes on by what was read"},
    {Coverage::ends, "a break: that call runs as eager runs it"},
    {Coverage::answered, "answers from sizes and dtypes: nothing to capture"},
}};

void check_how(const std::string& how) {
  std::string known;
  for (const auto& [coverage, meaning] : kMeanings) {
    if (how.empty() || how == frontend::name(coverage)) return;
    known += (known.empty() ? "" : ", ") + std::string(frontend::name(coverage));
  }
  throw UserError(fmt::format("'{}' is no kind of coverage. Known: {}", how, known));
}

}  // namespace

int ops(const OpsOptions& options) {
  check_how(options.how);
  std::map<Coverage, int64_t> counts;
  for (const frontend::AuditedOp& op : frontend::audit_ops()) {
    if (op.op.find(options.pattern) == std::string::npos) continue;
    if (!options.how.empty() && options.how != frontend::name(op.coverage)) continue;
    ++counts[op.coverage];
    fmt::print("{:<11} {}{}{}\n", frontend::name(op.coverage), op.op, op.why.empty() ? "" : "  ", op.why);
  }
  if (counts.empty()) throw UserError(fmt::format("no operator has '{}' in its name", options.pattern));
  fmt::print("\n");
  for (const auto& [coverage, meaning] : kMeanings) {
    if (counts[coverage] > 0) fmt::print("{:>5} {:<11} {}\n", counts[coverage], frontend::name(coverage), meaning);
  }
  return 0;
}

}  // namespace sinter::command
