#include <gtest/gtest.h>

#include <algorithm>

#include "tests/command/program.h"

namespace sinter::test {
namespace {

std::string data(const std::string& name) { return std::string(SINTER_MODEL_FILES) + "/" + name; }

void expect_says(const Ran& ran, int code, const std::vector<std::string>& parts) {
  EXPECT_EQ(ran.code, code) << ran.out << ran.err;
  for (const std::string& part : parts) EXPECT_NE((ran.out + ran.err).find(part), std::string::npos) << part << ran.out;
}

void expect_refused(const Ran& ran, const std::vector<std::string>& parts) {
  expect_says(ran, 2, parts);
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
}

TEST(Files, run_with_the_inputs_that_they_hold_or_that_are_described) {
  expect_says(sinter({"run", data("nested.pt2"), "--device", "cpu"}), 0,
              {"nested.pt2  default  1 entry, 0 breaks", "check passed"});
  expect_says(sinter({"run", data("sizes.pt2"), "--device", "cpu", "--input", "f32[6,8]"}), 0,
              {"f32[6,8]", "check passed"});
  expect_says(sinter({"explain", data("traced.pt"), "--device", "cpu", "--input", "f32[2,3,17,17]"}), 0,
              {"layers.0.conv", "check passed"});
  expect_says(sinter({"run", data("convnet.pt2"), "--device", "cpu", "--dtype", "bf16"}), 0,
              {"bf16[2,3,17,17]", "check passed"});
}

TEST(Files, are_measured_against_the_widest_dtype_that_their_operators_know) {
  expect_says(sinter({"run", data("convnet.pt2"), "--device", "cpu"}), 0, {"check passed against float64"});
  const Ran ran = sinter({"run", data("no_double.pt"), "--device", "cpu", "--input", "bf16[1,3,8,8]"});
  if (ran.err.find("needs the cpu support") != std::string::npos) GTEST_SKIP() << "oneDNN has no bfloat16 here";
  expect_says(ran, 0, {"bf16[1,3,8,8]", "check passed against float32"});
}

TEST(Files, save_results_that_a_later_run_is_checked_against) {
  const Folder folder;
  const std::string saved = folder.path("result.pt");
  const std::vector<std::string> model = {"run", data("nested.pt2"), "--device", "cpu", "--calls", "1"};
  const auto with = [&](const std::string& option, const std::string& value) {
    auto arguments = model;
    arguments.insert(arguments.end(), {option, value});
    return sinter(arguments);
  };
  expect_says(with("--out", saved), 0, {"check passed"});
  expect_says(with("--check", saved), 0, {"as saved result 0  largest error", "as saved result 2"});
}

TEST(Files, that_give_other_results_than_saved_fail_with_the_largest_error_and_its_place) {
  const Folder folder;
  const std::string saved = folder.path("result.pt");
  expect_says(sinter({"run", "gelu", "--device", "cpu", "--input", "f32[4,8]", "--calls", "1", "--out", saved}), 0, {});
  expect_says(sinter({"run", "gelu", "--device", "cpu", "--input", "f32[4,8]", "--calls", "1", "--seed", "5", "--check",
                      saved}),
              1, {"NOT AS SAVED result 0  largest error", " at [", "(eager "});
  expect_refused(sinter({"run", "gelu", "--device", "cpu", "--input", "f32[4,9]", "--calls", "1", "--check", saved}),
                 {"result 0 is [4,8], the model gives [4,9]"});
}

TEST(Files, of_inputs_are_tensors_that_torch_save_wrote) {
  const Folder folder;
  const std::string saved = folder.path("inputs.pt");
  expect_says(sinter({"run", "gelu", "--device", "cpu", "--input", "f32[4,8]", "--calls", "1", "--out", saved}), 0, {});
  expect_says(sinter({"run", data("branch.pt2"), "--device", "cpu", "--inputs", saved}), 0,
              {"f32[4,8]", "check passed"});
  expect_says(sinter({"run", "gelu", "--device", "cpu", "--inputs", saved}), 0, {"f32[4,8]", "check passed"});
  expect_refused(sinter({"run", data("nested.pt2"), "--device", "cpu", "--inputs", saved}),
                 {"argument 1 (extra) is missing"});
  expect_refused(sinter({"run", "gelu", "--inputs", saved, "--input", "f32[4]"}), {"--inputs and --input"});
}

TEST(Files, that_are_no_models_are_refused) {
  const Folder folder;
  for (const char* command : {"run", "explain", "bench", "dump"}) {
    expect_refused(sinter({command, folder.path("absent.pt2")}), {"absent.pt2: no such file"});
  }
  expect_refused(sinter({"run", folder.file("empty.pt", "")}), {"the file is empty"});
  expect_refused(sinter({"run", folder.file("text.pt2", "hello")}), {"not a model file"});
  expect_refused(sinter({"run", data("convnet.case.pt")}), {"not a model"});
  expect_refused(sinter({"run", data("traced.pt"), "--device", "cpu"}), {"does not say what it takes", "--input"});
  expect_refused(sinter({"run", data("convnet.pt2"), "--device", "cpu", "--input", "f32[2,3,18,17]"}),
                 {"exported for Float[2,3,17,17]", "dynamic_shapes"});
  expect_refused(sinter({"run", data("traced.pt"), "--device", "cpu", "--input", "f32[2,4,17,17]"}),
                 {"stem", "the model refused its input", "to have 3 channels"});
}

TEST(Files, of_weights_are_what_torch_save_wrote_of_a_state_dict) {
  expect_says(sinter({"run", "gelu_mlp", "--device", "cpu", "--input", "f32[2,768]", "--calls", "1", "--weights",
                      data("mlp_state.pt")}),
              0, {"check passed"});
  expect_refused(sinter({"run", "gelu_mlp", "--device", "cpu", "--weights", data("narrow_state.pt")}),
                 {"fc1.weight is [8,768], not [3072,768]", "fc2.weight is [768,8]"});
  expect_refused(sinter({"run", "gelu_mlp", "--device", "cpu", "--weights", data("state.pt")}),
                 {"missing: fc1.bias", "not in the model: ", "layers.0.bn.running_mean"});
}

TEST(Files, of_weights_name_what_is_missing_extra_or_misshapen) {
  const Folder folder;
  const std::string saved = folder.path("tensor.pt");
  expect_says(sinter({"run", "gelu", "--device", "cpu", "--input", "f32[4,8]", "--calls", "1", "--out", saved}), 0, {});
  expect_refused(sinter({"run", "gelu_mlp", "--device", "cpu", "--weights", saved}), {"no state dict"});
  expect_refused(
      sinter({"run", "gelu_mlp", "--device", "cpu", "--weights", data("wrong_state.pt")}),
      {"missing: fc2.bias", "not in the model: fc3.weight", "of another shape: fc1.weight is [8,768], not [3072,768]"});
  expect_refused(sinter({"run", "gelu", "--device", "cpu", "--weights", saved}), {"has no weights"});
  expect_refused(sinter({"run", data("convnet.pt2"), "--weights", saved}), {"--weights is for built-in models"});
}

}  // namespace
}  // namespace sinter::test
