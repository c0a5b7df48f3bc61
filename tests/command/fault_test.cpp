// Planted faults: each is noticed, said in one place and survived.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/command/program.h"

namespace sinter::test {
namespace {

using nlohmann::json;

const std::vector<std::string> gelu{"run", "gelu", "--device", "cpu", "--input", "f32[64]"};

std::vector<std::string> gelu_with(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = gelu;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Faults, a_wrong_result_fails_the_check_with_exit_code_1) {
  const Ran ran = sinter(gelu_with({"--calls", "3"}), {"SINTER_FAULT=lost_op"});
  EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("check FAILED"), std::string::npos) << ran.out;
}

TEST(Faults, a_kernel_that_does_not_compile_leaves_the_call_to_aten_and_stands_in_the_report) {
  const Folder folder;
  const std::string path = folder.path("report.json");
  const Ran ran = sinter(gelu_with({"--calls", "3", "--json", path}),
                         {"SINTER_FAULT=kernel_text", "SINTER_DUMP_DIR=" + folder.path("")});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("check passed"), std::string::npos) << ran.out;
  const json entry = json::parse(text_of(path)).at("entries").at(0);
  EXPECT_EQ(entry.at("compiled"), false);
  EXPECT_EQ(entry.at("breaks").at(0).at("code"), "compile-failed");
  EXPECT_EQ(entry.at("breaks").at(0).at("where"), "llvm");
  const std::string error = entry.at("internal_error");
  const std::string_view saved = "(saved: ";
  ASSERT_NE(error.find(saved), std::string::npos) << error;
  const std::string file =
      error.substr(error.find(saved) + saved.size(), error.rfind(')') - error.find(saved) - saved.size());
  const std::string text = text_of(file);
  EXPECT_NE(text.find("this line was planted"), std::string::npos) << "the source is in " << file << "\n" << text;
  EXPECT_NE(text.find("expected top-level entity"), std::string::npos) << "the compiler's log is in " << file << "\n"
                                                                       << text;
}

TEST(Faults, a_segment_that_throws_where_its_operators_do_not_is_told_and_runs_no_more) {
  const Folder folder;
  const std::string path = folder.path("report.json");
  for (const char* replay : {"checked", "trusted"}) {
    const Ran ran = sinter(gelu_with({"--calls", "5", "--replay", replay, "--json", path}), {"SINTER_FAULT=run"});
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
    EXPECT_NE(ran.out.find("check passed"), std::string::npos) << ran.out;
    const json entry = json::parse(text_of(path)).at("entries").at(0);
    EXPECT_EQ(entry.at("breaks").size(), 1U) << entry;
    EXPECT_EQ(entry.at("breaks").at(0).at("code"), "compile-failed");
    EXPECT_EQ(entry.at("breaks").at(0).at("where"), "run");
    const std::string error = entry.at("internal_error");
    EXPECT_NE(error.find("this failure was planted"), std::string::npos) << error;
  }
}

TEST(Faults, a_segment_that_throws_where_its_operators_do_not_is_thrown_under_strict) {
  const Ran ran = sinter(gelu_with({"--strict"}), {"SINTER_FAULT=run"});
  EXPECT_EQ(ran.code, 1) << ran.out;
  EXPECT_NE(ran.err.find("internal error: run: "), std::string::npos) << ran.err;
}

TEST(Faults, a_kernel_that_does_not_compile_is_thrown_under_strict) {
  const Folder folder;
  const Ran ran = sinter(gelu_with({"--strict"}), {"SINTER_FAULT=kernel_text", "SINTER_DUMP_DIR=" + folder.path("")});
  EXPECT_EQ(ran.code, 1) << ran.out;
  EXPECT_NE(ran.err.find("internal error: llvm"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("saved: "), std::string::npos) << ran.err;
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
}

}  // namespace
}  // namespace sinter::test
