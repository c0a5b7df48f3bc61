#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/command/program.h"

namespace sinter::test {
namespace {

using nlohmann::json;

const std::string samples = std::string(SINTER_MODEL_FILES) + "/samples";

Ran check(const std::string& folder, const std::vector<std::string>& more = {},
          const std::vector<std::string>& environment = {}) {
  std::vector<std::string> arguments{"check-files", folder, "--device", "cpu"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return sinter(arguments, environment);
}

/// Sizes that depend on data, conjugates, circular padding, and results with nan: most of them are single operators
/// that run between segments.
TEST(CheckFiles, of_operators_that_need_data_or_other_bits_agree_or_run_as_eager) {
  const Folder folder;
  const std::string path = folder.path("report.json");
  const Ran ran = check(samples, {"--report", path});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  const json report = json::parse(text_of(path));
  const json& row = report.at("dtypes").at("any");
  EXPECT_GE(row.at("files").get<int>(), 10);
  EXPECT_GE(row.at("agrees").get<int>(), 2) << ran.out;
  EXPECT_EQ(row.at("agrees").get<int>() + row.at("ran eager").get<int>(), row.at("files").get<int>()) << ran.out;
}

TEST(CheckFiles, that_differ_from_eager_fail_and_say_in_what) {
  const Ran ran = check(samples, {"--only", "special"}, {"SINTER_FAULT=lost_op"});
  EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("differs  special"), std::string::npos) << ran.out;
}

TEST(CheckFiles, one_that_hangs_loses_no_other) {
  const Folder folder;
  for (const char* name : {"a.pt2", "b.pt2"}) std::filesystem::copy_file(samples + "/special.pt2", folder.path(name));
  const Ran ran = check(folder.path(""), {"--timeout", "5"}, {"SINTER_FAULT=hang_at_a.pt2"});
  EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("ended  a.pt2  it took longer than 5 s"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("b.pt2"), std::string::npos) << ran.out;
}

TEST(CheckFiles, that_cannot_be_read_are_named_with_the_reason) {
  const Folder folder;
  (void)folder.file("broken.pt2", "no zip");
  const Ran ran = check(folder.path(""));
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("refused  broken.pt2"), std::string::npos) << ran.out;
}

TEST(CheckFiles, in_an_empty_folder_are_misuse) {
  const Folder folder;
  const Ran ran = check(folder.path(""));
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("it holds no .pt2 file to check"), std::string::npos) << ran.err;
}

/// What was saved holds nan and infinities; so does the result.
TEST(Files, results_with_nan_are_as_saved_where_both_are_nan) {
  const Folder folder;
  const std::string saved = folder.path("result.pt");
  const std::string model = samples + "/special.pt2";
  ASSERT_EQ(sinter({"run", model, "--device", "cpu", "--calls", "1", "--out", saved}).code, 0);
  const Ran ran = sinter({"run", model, "--device", "cpu", "--calls", "1", "--check", saved});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("as saved result 0  largest error 0 of"), std::string::npos) << ran.out;
}

}  // namespace
}  // namespace sinter::test
