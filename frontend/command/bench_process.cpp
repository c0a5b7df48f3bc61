#include "frontend/command/bench_process.h"

#include <fmt/format.h>

#include "frontend/command/process.h"

namespace sinter::command {
namespace {

std::vector<std::string> child_arguments(const TargetOptions& target, const std::string& mode,
                                         const ChildOptions& child, const std::string& file) {
  std::vector<std::string> arguments{"bench-child", target.model,
                                     "--mode",      mode,
                                     "--kind",      child.kind,
                                     "--budget",    fmt::format("{}", child.budget),
                                     "--out",       file,
                                     "--seed",      fmt::format("{}", target.seed),
                                     "--numerics",  target.numerics,
                                     "--replay",    target.replay};
  for (const std::string& input : target.inputs) arguments.insert(arguments.end(), {"--input", input});
  for (const std::string& setting : target.settings) arguments.insert(arguments.end(), {"--set", setting});
  if (!target.inputs_file.empty()) arguments.insert(arguments.end(), {"--inputs", target.inputs_file});
  if (!target.weights.empty()) arguments.insert(arguments.end(), {"--weights", target.weights});
  if (!target.device.empty()) arguments.insert(arguments.end(), {"--device", target.device});
  if (!target.dtype.empty()) arguments.insert(arguments.end(), {"--dtype", target.dtype});
  if (target.batch > 0) arguments.insert(arguments.end(), {"--batch", fmt::format("{}", target.batch)});
  if (target.train) arguments.emplace_back("--train");
  if (!target.amp.empty()) arguments.insert(arguments.end(), {"--amp", target.amp});
  if (!target.optimizer.empty()) arguments.insert(arguments.end(), {"--optimizer", target.optimizer});
  if (child.losses > 0) arguments.insert(arguments.end(), {"--losses", fmt::format("{}", child.losses)});
  if (target.freeze) arguments.emplace_back("--freeze");
  if (target.strict) arguments.emplace_back("--strict");
  if (target.fullgraph) arguments.emplace_back("--fullgraph");
  return arguments;
}

}  // namespace

std::optional<nlohmann::json> measure(const TargetOptions& target, const std::string& mode, const ChildOptions& child,
                                      const std::string& cache) {
  const TemporaryFile file;
  const int code = run_self(child_arguments(target, mode, child, file.path()), {"SINTER_CACHE=" + cache});
  if (code == 2) throw AlreadySaid();
  if (code != 0) return std::nullopt;
  return nlohmann::json::parse(file.read());
}

}  // namespace sinter::command
