#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/command/program.h"

namespace sinter::test {
namespace {

using nlohmann::json;

/// What `sinter profile ARGUMENTS --json` wrote, after it printed nothing on standard error.
json profiled(std::vector<std::string> arguments, const Folder& folder) {
  const std::string file = folder.path("profile.json");
  arguments.insert(arguments.begin(), "profile");
  arguments.insert(arguments.end(), {"--device", "cpu", "--json", file});
  const Ran ran = sinter(arguments);
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  return ran.code == 0 ? json::parse(text_of(file)) : json();
}

std::set<std::string> paths_of(const json& mode, const std::string& op, const std::string& phase) {
  std::set<std::string> paths;
  for (const json& each : mode.at("operators")) {
    if (each.at("op") != op || each.at("phase") != phase || each.at("module") < 0) continue;
    paths.insert(mode.at("modules").at(each.at("module").get<size_t>()).at("path").get<std::string>());
  }
  return paths;
}

TEST(ProfileCommand, names_module_and_line_of_a_gather_in_its_backward_pass) {
  const Folder folder;
  const json whole = profiled({"vit_b16", "--train", "--set", "depth=1", "--set", "image_size=32", "--input",
                               "f32[2,3,32,32]", "--set", "patch_dropout=0.5", "--steps", "1", "--deterministic"},
                              folder);
  const json& eager = whole.at("modes").at(0);
  bool backward = false;
  for (const json& op : eager.at("operators")) {
    if (op.at("autograd") != "GatherBackward0") continue;
    backward = true;
    EXPECT_EQ(eager.at("modules").at(op.at("module").get<size_t>()).at("path"), "encoder.patch_dropout");
    EXPECT_EQ(op.at("line").get<std::string>().substr(0, 8), "vit.cpp:");
  }
  EXPECT_TRUE(backward);
  EXPECT_GE(eager.at("attributed"), 0.95);
}

TEST(ProfileCommand, shows_eager_beside_a_mode_and_what_compiling_took) {
  const Folder folder;
  const json whole = profiled({"gelu_mlp", "--mode", "default", "--input", "f32[8,768]"}, folder);
  ASSERT_EQ(whole.at("modes").size(), 2U);
  EXPECT_EQ(whole.at("modes").at(1).at("mode"), "default");
  EXPECT_EQ(paths_of(whole.at("modes").at(0), "aten::addmm", "forward"), (std::set<std::string>{"fc1", "fc2"}));
  const Ran ran = sinter({"profile", "gelu_mlp", "--device", "cpu", "--mode", "default", "--input", "f32[8,768]"});
  EXPECT_NE(ran.out.find("compile time"), std::string::npos);
}

TEST(ProfileCommand, of_a_file_names_the_modules_and_lines_that_it_states) {
  const Folder folder;
  const json whole = profiled({std::string(SINTER_MODEL_FILES) + "/convnet.pt2"}, folder);
  const json& eager = whole.at("modes").at(0);
  EXPECT_GE(eager.at("attributed"), 0.9);
  for (const json& op : eager.at("operators")) EXPECT_EQ(op.at("how"), "stated") << op;
}

TEST(ProfileCommand, trains_a_file_on_the_classes_of_its_result) {
  const Folder folder;
  const json whole =
      profiled({std::string(SINTER_MODEL_FILES) + "/convnet.pt2", "--train", "--mode", "default"}, folder);
  const json& eager = whole.at("modes").at(0);
  for (const char* phase : {"forward", "loss", "backward", "optimizer"}) {
    EXPECT_GT(eager.at("phases_ms").at(phase), 0) << phase;
  }
  EXPECT_EQ(paths_of(eager, "aten::convolution_backward", "backward"),
            (std::set<std::string>{"stem", "layers.0.conv", "layers.1.conv"}));
  EXPECT_GE(eager.at("attributed"), 0.95);
  const Ran ran = sinter({"profile", std::string(SINTER_MODEL_FILES) + "/branch.pt2", "--train", "--device", "cpu"});
  EXPECT_NE(ran.code, 0);
  EXPECT_NE(ran.err.find("parameters to train"), std::string::npos) << ran.err;
}

TEST(ProfileCommand, writes_a_trace_that_parses_and_a_page) {
  const Folder folder;
  const std::string trace = folder.path("trace.json");
  const std::string page = folder.path("page.html");
  (void)profiled({"gelu_mlp", "--input", "f32[8,768]", "--trace", trace, "--html", page}, folder);
  EXPECT_NE(text_of(page).find("gelu.cpp:"), std::string::npos);
  const json events = json::parse(text_of(trace)).at("traceEvents");
  EXPECT_GT(events.size(), 3U);
  for (const json& event : events) {
    if (event.at("ph") == "X") {
      EXPECT_GE(event.at("dur"), 0);
    }
  }
}

TEST(ProfileCommand, says_what_is_wrong_in_a_line) {
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"profile", "gelu", "--device", "cpu", "--mode", "fast"},
        std::vector<std::string>{"profile", "gelu", "--device", "cpu", "--steps", "0"},
        std::vector<std::string>{"profile", "gelu", "--device", "cpu", "--json", "/nowhere/profile.json"}}) {
    const Ran ran = sinter(wrong);
    EXPECT_EQ(ran.code, 2) << ran.out;
    EXPECT_EQ(ran.err.substr(0, 8), "sinter: ");
  }
}

}  // namespace
}  // namespace sinter::test
