#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <iostream>

#include "bench/compare/profile_page.h"
#include "compiler/support/errors.h"
#include "frontend/command/commands.h"
#include "sinter/profile.h"

namespace sinter::command {
namespace {

/// Nothing for eager alone.
std::optional<Options> compiled_as(const ProfileCommand& options, const Target& target) {
  if (options.mode == "eager") return std::nullopt;
  TargetOptions chosen = options.target;
  chosen.mode = options.mode;
  return steady_options(chosen, target);
}

Profile profile_of(const ProfileCommand& options, const Target& target) {
  ProfileOptions chosen{.steps = options.steps, .warmup = options.warmup, .name = target.name};
  chosen.compile = compiled_as(options, target);
  if (target.module) chosen.modules = {{"", target.module}};
  return sinter::profile(target.forward, std::move(chosen))(target.first);
}

}  // namespace

int profile(const ProfileCommand& options) {
  for (const std::string& file : {options.json, options.trace, options.html}) check_writable(file);
  if (options.mode != "eager") (void)parse_mode(options.mode);
  const at::AutoGradMode grad(options.target.train);
  if (options.deterministic) at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  const Target target = make_target(options.target);
  const Profile profile = profile_of(options, target);
  std::cout << profile;
  if (options.mode != "eager") {
    const CompileTimes times = compile_times();
    std::cout << "\ncompile time of this process, from the kernel cache as it was\n"
              << times << pays_line(times.total(), profile.modes.front().step_ms, profile.modes.back().step_ms);
  }
  if (!options.json.empty()) write_file(options.json, profile.json());
  if (!options.trace.empty()) write_file(options.trace, profile.chrome_trace());
  if (!options.html.empty()) write_file(options.html, bench::profile_page(nlohmann::json::parse(profile.json())));
  return 0;
}

}  // namespace sinter::command
