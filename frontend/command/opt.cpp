#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string_view>

#include "compiler/compile.h"
#include "compiler/ir/parse.h"
#include "compiler/ir/print.h"
#include "compiler/ir/verify.h"
#include "compiler/passes/pipeline.h"
#include "compiler/passes/plan_memory.h"
#include "compiler/plan_print.h"
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

constexpr std::string_view last_pass = "plan_memory";  ///< turns the graph into a plan, so nothing follows it
constexpr std::string_view all_passes = "all";         ///< in the place of their names
constexpr std::string_view why_last = "last: it gives every value of the final graph its memory, and prints the plan";

/// The names, with those of all passes in the place of "all".
std::vector<std::string> expanded(const std::vector<std::string>& names) {
  std::vector<std::string> list;
  for (const std::string& name : names) {
    if (name != all_passes) {
      list.push_back(name);
      continue;
    }
    for (const passes::PipelineRow& row : passes::pipeline()) list.emplace_back(row.name);
  }
  return list;
}

/// What passes are told: a graph on a GPU is compiled as for an H100 with cuDNN, any other for the CPU.
passes::PassContext context_for(const ir::Graph& graph, bool freeze) {
  passes::PassContext context;
  context.freeze = freeze;
  const bool cuda = graph.device.kind == ir::Device::Kind::cuda;
  context.device.backend = cuda ? Backend::cuda : Backend::llvm;
  context.device.channels_last_half = cuda;
  return context;
}

bool is_pass(std::string_view name) {
  if (name == last_pass) return true;
  const auto rows = passes::pipeline();
  return std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row.name == name; });
}

void check_pass(const std::string& name) {
  if (name == all_passes || is_pass(name)) return;
  std::string known;
  for (const passes::PipelineRow& row : passes::pipeline()) {
    if (known.find(row.name) == std::string::npos) known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw UserError(fmt::format("pass '{}' is unknown. Known: {}, {}", name, known, last_pass));
}

void check_passes(const std::vector<std::string>& names) {
  for (const std::string& name : names) check_pass(name);
  const auto planned = std::find(names.begin(), names.end(), last_pass);
  if (planned != names.end() && planned + 1 != names.end()) {
    throw UserError(fmt::format("--pass {} makes a plan of the graph: name it last", last_pass));
  }
}

/// The plan of a graph that was fused, on the CPU unless the graph is a GPU's. Throws UserError on a graph that was
/// not.
Plan plan_of(const ir::Graph& graph) {
  const auto problems = ir::verify(graph, ir::Stage::fused);
  if (!problems.empty()) {
    throw UserError(fmt::format("{} takes a fused graph ({}): run --pass fuse first", last_pass, problems.front()));
  }
  return passes::plan_memory(graph, {}).plan;
}

/// The whole pipeline, then the plan and the text of its kernels. Throws UserError on a graph that passes have fused.
int print_kernels(const ir::Graph& graph, const passes::PassContext& context) {
  const auto problems = ir::verify(graph, ir::Stage::captured);
  if (!problems.empty()) {
    throw UserError(fmt::format("--kernels takes a captured graph, and compiles it whole: {}", problems.front()));
  }
  CompileOptions options;
  options.freeze = context.freeze;
  options.device = context.device;
  EntryReport report;
  const Plan plan = sinter::compile(graph, options, report);
  fmt::print("{}", print(plan));
  for (const KernelSource& kernel : plan.kernels) fmt::print("\n{}{}", kernel.comment, kernel.text);
  return 0;
}

/// An item of SINTER_DUMP; what follows "after:" is a stage or a pass.
void check_item(const std::string& item) {
  constexpr std::array plain = {"after:capture", "kernel", "cuda", "llvm", "plan", "all", "help"};
  if (std::find(plain.begin(), plain.end(), item) != plain.end()) return;
  if (item.starts_with("after:") && is_pass(item.substr(6))) return;
  throw UserError(fmt::format(
      "dump item '{}' is unknown. Known: after:capture, after:PASS, kernel, cuda, llvm, plan, all, help", item));
}

}  // namespace

int opt(const OptOptions& options) {
  if (options.list) {
    for (const passes::PipelineRow& row : passes::pipeline()) fmt::print("{:<16} {}\n", row.name, row.why);
    fmt::print("{:<16} {}\n", last_pass, why_last);
    return 0;
  }
  check_passes(options.passes);
  ir::Graph graph = ir::parse(read_file(options.file), options.file == "-" ? "standard input" : options.file);
  if (options.kernels && !options.passes.empty()) throw UserError("--kernels runs all passes: name none beside it");
  const std::vector<std::string> names = expanded(options.passes);
  const bool plan = !names.empty() && names.back() == last_pass;
  const passes::PassContext context = context_for(graph, options.freeze);
  if (options.kernels) return print_kernels(graph, context);
  for (const std::string& pass : names) {
    if (pass != last_pass) passes::run_pass(pass, graph, context);
  }
  fmt::print("{}", plan ? print(plan_of(graph)) : ir::print(graph));
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
  const at::AutoGradMode grad(options.target.train);
  const Target target = make_target(options.target);
  auto compiled = sinter::compile(target.forward, compile_options(options.target, target));
  // What comes twice is compiled. A first training step makes what later ones find.
  const int calls = options.target.train ? 4 : 2;
  for (int times = 0; times < calls; ++times) (void)call(compiled, target.first);
  return 0;
}

}  // namespace sinter::command
