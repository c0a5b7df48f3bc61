#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string_view>

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

bool is_pass(std::string_view name) {
  const auto rows = passes::pipeline();
  return std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row.name == name; });
}

void check_pass(const std::string& name) {
  if (is_pass(name)) return;
  std::string known;
  for (const passes::PipelineRow& row : passes::pipeline()) {
    if (known.find(row.name) == std::string::npos) known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw UserError(fmt::format("pass '{}' is unknown. Known: {}", name, known));
}

/// An item of SINTER_DUMP; what follows "after:" is a stage or a pass.
void check_item(const std::string& item) {
  constexpr std::array plain = {"after:capture", "cuda", "llvm", "plan", "all", "help"};
  if (std::find(plain.begin(), plain.end(), item) != plain.end()) return;
  if (item.starts_with("after:") && is_pass(item.substr(6))) return;
  throw UserError(
      fmt::format("dump item '{}' is unknown. Known: after:capture, after:PASS, cuda, llvm, plan, all, help", item));
}

}  // namespace

int opt(const OptOptions& options) {
  if (options.list) {
    for (const passes::PipelineRow& row : passes::pipeline()) fmt::print("{:<16} {}\n", row.name, row.why);
    return 0;
  }
  for (const std::string& pass : options.passes) check_pass(pass);
  ir::Graph graph = ir::parse(read_file(options.file), options.file == "-" ? "standard input" : options.file);
  for (const std::string& pass : options.passes) passes::run_pass(pass, graph, {});
  fmt::print("{}", ir::print(graph));
  return 0;
}

int dump(const DumpOptions& options) {
  // The compiler reads SINTER_DUMP once, at its first use: this runs before it.
  std::string items;
  for (const std::string& item : options.items) check_item(item);
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
  (void)call(compiled, inputs);
  return 0;
}

}  // namespace sinter::command
