#include <gtest/gtest.h>

#include <algorithm>

#include "tests/command/program.h"

namespace sinter::test {
namespace {

/// One line on standard error that says all of `parts`, exit code 2, nothing of the inside.
void expect_misuse(const std::vector<std::string>& arguments, const std::vector<std::string>& parts) {
  const Ran ran = sinter(arguments);
  EXPECT_EQ(ran.code, 2) << ran.out << ran.err;
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  EXPECT_EQ(ran.err.rfind("sinter: ", 0), 0U) << ran.err;
  for (const std::string& part : parts) EXPECT_NE(ran.err.find(part), std::string::npos) << part << "\n" << ran.err;
  for (const char* inside : {"terminate called", "frame #", "Exception raised from", "what():"}) {
    EXPECT_EQ(ran.err.find(inside), std::string::npos) << ran.err;
  }
}

TEST(Misuse, no_command_and_an_unknown_command) {
  expect_misuse({}, {"subcommand is required", "--help"});
  expect_misuse({"rum"}, {"command 'rum' is unknown", "run", "bench", "explain", "dump", "opt", "models"});
}

TEST(Misuse, an_unknown_model_lists_the_known_ones) {
  for (const char* command : {"run", "explain", "bench", "dump"}) {
    expect_misuse({command, "resnet5"}, {"model 'resnet5' is unknown", "gelu, gelu_mlp, resnet50"});
  }
}

TEST(Misuse, an_unknown_option_is_named) { expect_misuse({"run", "gelu", "--moed", "default"}, {"--moed", "--help"}); }

TEST(Misuse, a_missing_model_is_named) { expect_misuse({"run"}, {"model is required"}); }

TEST(Misuse, a_setting_is_one_of_the_models_and_a_number_it_can_have) {
  expect_misuse({"run", "vgg16", "--set", "hiden=64"}, {"no setting 'hiden'", "Known: hidden"});
  expect_misuse({"run", "gelu", "--set", "depth=2"}, {"no setting 'depth'", "Known: none"});
  expect_misuse({"run", "vgg16", "--set", "hidden"}, {"setting 'hidden' is not a name and a number", "depth=2"});
  expect_misuse({"run", "vgg16", "--set", "hidden=1.5"}, {"setting 'hidden' is not a whole number"});
  expect_misuse({"run", "vgg16", "--set", "hidden=-1"}, {"setting 'hidden' is not a whole number"});
}

TEST(Misuse, an_unknown_operator_or_kind_of_coverage_is_named) {
  expect_misuse({"ops", "no_such_operator"}, {"no operator has 'no_such_operator' in its name"});
  expect_misuse({"ops", "--how", "fussed"}, {"'fussed' is no kind of coverage", "fused, decomposed, opened"});
}

TEST(Misuse, an_unknown_mode_lists_the_known_ones) {
  expect_misuse({"run", "gelu", "--mode", "fast"}, {"mode 'fast' is unknown", "default, reduce-overhead"});
  expect_misuse({"bench", "gelu", "--mode", "fast"}, {"mode 'fast' is unknown", "default, reduce-overhead"});
}

TEST(Misuse, an_unknown_dtype_lists_the_known_ones) {
  expect_misuse({"run", "gelu", "--dtype", "f8"}, {"dtype 'f8' is unknown", "f32, f16, bf16, f64"});
}

TEST(Misuse, an_unknown_optimizer_lists_the_known_ones) {
  expect_misuse({"run", "gelu_mlp", "--train", "--optimizer", "lion", "--device", "cpu"},
                {"optimizer 'lion' is unknown", "sgd, adamw, radam"});
}

TEST(Misuse, losses_are_those_of_training_steps) {
  expect_misuse({"bench", "gelu_mlp", "--losses", "5", "--device", "cpu"}, {"--losses", "add --train"});
  expect_misuse({"bench", "gelu_mlp", "--train", "--losses", "-5", "--device", "cpu"}, {"--losses"});
}

TEST(Misuse, unknown_numerics_list_the_known_ones) {
  expect_misuse({"run", "gelu", "--numerics", "exact"}, {"numerics 'exact' is unknown", "fast, eager"});
}

TEST(Misuse, an_unknown_device_lists_the_known_ones) {
  expect_misuse({"run", "gelu", "--device", "tpu"}, {"device 'tpu' is unknown", "cpu, cuda"});
}

TEST(Misuse, a_gpu_that_is_not_there_is_counted) {
  expect_misuse({"run", "gelu", "--device", "cuda:63"}, {"device 'cuda:63' is not here", "GPU(s)", "--device cpu"});
}

TEST(Misuse, a_negative_batch_is_refused) { expect_misuse({"run", "gelu", "--batch", "-1"}, {"--batch"}); }

TEST(Misuse, a_malformed_input_names_the_column_and_shows_an_example) {
  const std::string example = "Example: f16[1,3,224,224]";
  expect_misuse({"run", "gelu", "--input", "f16[1,3,224"},
                {"input 1: 'f16[1,3,224' ends inside a shape", "(column 12)", example});
  expect_misuse({"run", "gelu", "--input", "q32[4]"}, {"does not begin with a dtype", "(column 1)", example});
  expect_misuse({"run", "gelu", "--input", "f32"}, {"has no shape", "(column 4)", example});
  expect_misuse({"run", "gelu", "--input", "f32[4;4]"}, {"needs ',' or ']'", "(column 6)", example});
  expect_misuse({"run", "gelu", "--input", "f32[x]"}, {"no number where a size belongs", "(column 5)", example});
  expect_misuse({"run", "gelu", "--input", "f32[4]<"}, {"(column 8)", example});
  expect_misuse({"run", "gelu", "--input", "f32[4] "}, {"has text after the shape", "(column 7)", example});
  expect_misuse({"run", "gelu", "--input", "f32[99999999999999999999]"}, {"(column 5)", example});
}

TEST(Misuse, a_wrong_number_of_inputs_shows_an_example) {
  expect_misuse({"run", "gelu", "--input", "f32[4]", "--input", "f32[4]"}, {"takes 1 input(s), 2 given", "Example"});
}

TEST(Misuse, inputs_the_model_refuses_give_libtorchs_first_line_and_the_module) {
  const std::vector<std::string> parts = {"conv1", "the model refused its input", "to have 3 channels"};
  for (const char* command : {"run", "explain", "bench"}) {
    expect_misuse({command, "resnet50", "--device", "cpu", "--input", "f32[1,4,64,64]"}, parts);
  }
  expect_misuse({"run", "gelu_mlp", "--device", "cpu", "--input", "f32[2,767]"}, {"fc1", "2x767"});
}

TEST(Misuse, an_output_file_that_cannot_be_written_is_refused_before_any_work) {
  const Folder folder;
  const std::string path = folder.path("missing/report.json");
  const std::vector<std::string> parts = {path, "cannot be written", "No such file or directory"};
  for (const char* command : {"run", "explain", "bench"}) {
    const std::vector<std::string> arguments = {command,   "gelu",   "--device", "cpu",
                                                "--input", "f32[8]", "--json",   path};
    expect_misuse(arguments, parts);
    EXPECT_EQ(sinter(arguments).out, "");
  }
  expect_misuse({"demo", "--device", "cpu", "--report", path}, parts);
}

TEST(Misuse, a_refused_run_leaves_an_existing_report_alone) {
  const Folder folder;
  const std::string path = folder.file("report.json", "kept");
  expect_misuse({"run", "nothing", "--json", path}, {"model 'nothing' is unknown"});
  EXPECT_EQ(text_of(path), "kept");
}

TEST(Misuse, result_files_that_cannot_be_joined_are_named_and_nothing_is_measured) {
  const Folder folder;
  const std::string cut = folder.file("cut.json", "{\"rows\": [{\"model\": \"gelu\",");
  const std::string text = folder.file("text.json", "model steady_ms");
  const std::string none = folder.file("none.json", "{\"rows\": []}");
  const std::string typed = folder.file("typed.json", "{\"rows\": [{\"model\": 7}]}");
  const std::vector<std::pair<std::string, std::string>> cases = {{folder.path("missing.json"), "cannot be read"},
                                                                  {folder.path(""), "cannot be read"},
                                                                  {cut, "ends inside its JSON"},
                                                                  {text, "is not JSON"},
                                                                  {none, "'rows' is empty"},
                                                                  {typed, "row 1: 'model' is not a text"}};
  for (const auto& [path, what] : cases) {
    expect_misuse({"bench", "gelu", "--device", "cpu", "--input", "f32[8]", "--peer", path}, {path, what});
    expect_misuse({"bench", "--from", path}, {path, what});
  }
}

TEST(Misuse, joining_files_measures_nothing_so_options_of_measuring_are_refused) {
  expect_misuse({"bench", "gelu", "--from", "rows.json"}, {"--from"});
  expect_misuse({"bench", "--mode", "default", "--from", "rows.json"}, {"--from", "--mode"});
  expect_misuse({"bench", "--kernels", "--from", "rows.json"}, {"--from", "--kernels"});
}

TEST(Misuse, broken_ir_names_file_line_and_column) {
  const Folder folder;
  const std::string path =
      folder.file("broken.ir", "graph @g on cpu (%x: f32[4]) -> (%y) {\n  %y = frob %x : f32[4]\n}\n");
  expect_misuse({"opt", "--pass", "fuse", path}, {path + ":2:", "frob"});
  expect_misuse({"opt", folder.file("half.ir", "graph @g on cpu (%x: f32[4]")}, {"half.ir:1:"});
  expect_misuse({"opt", folder.file("empty.ir", "")}, {"empty.ir:1:1", "expected 'graph'"});
}

TEST(Misuse, an_unknown_pass_lists_the_known_ones) {
  expect_misuse({"opt", "--pass", "fuze", "x.ir"},
                {"pass 'fuze' is unknown", "functionalize, join_parts, lift_convolutions, split_bias_gradients"});
}

TEST(Misuse, a_graph_file_that_is_not_there_is_named) {
  expect_misuse({"opt", "nowhere.ir"}, {"nowhere.ir: cannot be read"});
}

TEST(Misuse, an_unknown_dump_item_lists_the_known_ones) {
  expect_misuse({"dump", "gelu", "--what", "after:fuze"}, {"dump item 'after:fuze' is unknown", "after:PASS"});
}

}  // namespace
}  // namespace sinter::test
