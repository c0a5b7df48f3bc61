// One golden file per behaviour of a pass: tests/passes/PASS/BEHAVIOUR.ir holds the graph that goes in, a line
// "# ==>", and what comes out. SINTER_UPDATE_GOLDENS=1 writes the second half anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/ir/parse.h"
#include "compiler/ir/print.h"
#include "compiler/passes/pipeline.h"
#include "compiler/passes/plan_memory.h"
#include "compiler/plan_print.h"

namespace sinter::passes {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view separator = "# ==>\n";

/// "# with: freeze, eager, cuda, channels-last, onednn, room, generic, measured" in a golden's first line sets the
/// context.
PassContext context_of(const std::string& text) {
  PassContext context;
  const std::string line = text.substr(0, text.find('\n'));
  if (!line.starts_with("# with:")) return context;
  const auto says = [&](std::string_view word) { return line.find(word) != std::string::npos; };
  context.freeze = says("freeze");
  context.numerics = says("eager") ? Numerics::eager : Numerics::fast;
  context.eager_peak_bytes = says("room") ? int64_t{1} << 40 : 0;
  context.generic_sizes = says("generic");
  context.measuring_seconds = says("measured") ? 1 : 0;
  context.device.backend = says("cuda") ? Backend::cuda : Backend::llvm;
  context.device.onednn = says("onednn");
  context.device.onednn_products = says("onednn");
  context.device.channels_last_float = says("channels-last") || says("onednn");
  context.device.channels_last_half = says("channels-last");
  return context;
}

std::string run(const std::string& pass, const std::string& text) {
  const PassContext context = context_of(text);
  ir::Graph graph = ir::parse(text);
  if (pass == "plan_memory") return print(plan_memory(graph, context).plan);
  run_pass(pass, graph, context);
  const std::string printed = ir::print(graph);
  EXPECT_EQ(ir::print(ir::parse(printed)), printed) << "what a pass leaves parses and prints again";
  return printed;
}

class Golden : public testing::TestWithParam<fs::path> {};

TEST_P(Golden, says_what_the_pass_does) {
  std::ostringstream contents;
  contents << std::ifstream(GetParam()).rdbuf();
  const std::string text = contents.str();
  const size_t middle = text.find(separator);
  const std::string input = text.substr(0, middle);
  const std::string expected = middle == std::string::npos ? "" : text.substr(middle + separator.size());
  const std::string found = run(GetParam().parent_path().filename().string(), input);
  if (std::getenv("SINTER_UPDATE_GOLDENS") != nullptr) {
    std::ofstream(GetParam()) << input << separator << found;
    return;
  }
  EXPECT_EQ(found, expected) << GetParam() << "\nSINTER_UPDATE_GOLDENS=1 writes what the pass does now";
}

std::vector<fs::path> goldens() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(SINTER_GOLDENS)) {
    if (entry.path().extension() == ".ir") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string test_name(const testing::TestParamInfo<fs::path>& info) {
  return info.param.parent_path().filename().string() + "_" + info.param.stem().string();
}

INSTANTIATE_TEST_SUITE_P(Passes, Golden, testing::ValuesIn(goldens()), test_name);

}  // namespace
}  // namespace sinter::passes
