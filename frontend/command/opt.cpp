#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#include "compiler/ir/parse.h"
#include "compiler/ir/print.h"
#include "compiler/passes/pipeline.h"
#include "compiler/support/dump.h"
#include "compiler/support/errors.h"
#include "frontend/command/commands.h"

namespace sinter::command {
namespace {

std::string read_file(const std::string& path) {
  std::ostringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  std::ifstream file(path);
  if (!file) throw UserError(fmt::format("{}: cannot be read. Name a file with a graph in text form, or -", path));
  text << file.rdbuf();
  return text.str();
}

}  // namespace

int opt(const OptOptions& options) {
  if (options.list) {
    for (const passes::PipelineRow& row : passes::pipeline()) fmt::print("{:<16} {}\n", row.name, row.why);
    return 0;
  }
  ir::Graph graph = ir::parse(read_file(options.file));
  for (const std::string& pass : options.passes) passes::run_pass(pass, graph, {});
  fmt::print("{}", ir::print(graph));
  return 0;
}

int dump(const DumpOptions& options) {
  // The compiler reads SINTER_DUMP once, at its first use: this runs before it.
  std::string items;
  for (const std::string& item : options.items) items += (items.empty() ? "" : ",") + item;
  setenv("SINTER_DUMP", items.c_str(), 1);
  if (options.items == std::vector<std::string>{"help"}) {
    fmt::print("{}", Dump::help());
    return 0;
  }
  const at::NoGradGuard no_grad;
  const Target target = make_target(options.target);
  auto compiled = sinter::compile(target.model.forward, compile_options(options.target, target));
  Inputs inputs;
  for (const bench::InputSpec& spec : target.specs) inputs.push_back(bench::draw(spec, target.device));
  (void)compiled(inputs);
  return 0;
}

}  // namespace sinter::command
