#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/command/program.h"

namespace sinter::test {
namespace {

using nlohmann::json;

/// Exit code 0, nothing on standard error, all of `parts` on standard output.
void expect_output(const std::vector<std::string>& arguments, const std::vector<std::string>& parts) {
  const Ran ran = sinter(arguments);
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  for (const std::string& part : parts) EXPECT_NE(ran.out.find(part), std::string::npos) << part << "\n" << ran.out;
}

TEST(Commands, help_names_every_command) {
  expect_output({"--help"}, {"run", "bench", "explain", "dump", "opt", "models"});
}

TEST(Commands, models_lists_names_and_inputs) {
  expect_output({"models"}, {"gelu ", "gelu_mlp", "resnet50", "f32[1,3,224,224]"});
}

TEST(Commands, run_checks_and_prints_the_report) {
  expect_output({"run", "gelu", "--device", "cpu", "--input", "f32[64,3]"},
                {"gelu  default  1 entry, 0 breaks", "f32[64,3]", "fused_div_erf_add_mul_mul", "check passed"});
}

TEST(Commands, run_converts_the_model_and_replaces_the_batch) {
  expect_output({"run", "gelu_mlp", "--device", "cpu", "--dtype", "bf16", "--batch", "3", "--mode", "reduce-overhead"},
                {"gelu_mlp  reduce-overhead", "bf16[3,768]", "check passed"});
}

TEST(Commands, run_writes_its_report_as_json) {
  const Folder folder;
  const std::string path = folder.path("report.json");
  expect_output({"run", "gelu", "--device", "cpu", "--input", "f32[64]", "--json", path}, {"check passed"});
  const json report = json::parse(text_of(path));
  EXPECT_EQ(report.at("function"), "gelu");
  ASSERT_EQ(report.at("entries").size(), 1U);
  EXPECT_EQ(report.at("entries").at(0).at("kernels").at(0).at("launches"), 1);
  EXPECT_EQ(report.at("entries").at(0).at("captured_calls"), 5) << "div, erf, add and two muls";
}

TEST(Commands, ops_lists_what_becomes_of_every_aten_operator) {
  expect_output(
      {"ops"},
      {"fused       aten::mul.Tensor\n", "fused       aten::mul_.Tensor\n", "decomposed  aten::gelu\n",
       "decomposed  aten::native_batch_norm\n", "called      aten::addmm\n", "opened      aten::linear\n",
       "read        aten::_local_scalar_dense  its result\n",
       "read        aten::nonzero  the sizes of its results, which depend on data\n",
       "read        aten::tensor_split.tensor_indices_or_sections  integers in an argument\n",
       "called      aten::index_add_\n", "ends        aten::resize_  changes the storage or the sizes of a tensor\n",
       "ends        aten::fbgemm_pack_quantized_matrix  does work of its own that no operator tells of\n"});
  expect_output({"ops", "conv", "--how", "called"}, {"called      aten::convolution\n"});
}

TEST(Commands, explain_lists_kernels_and_calls) {
  expect_output({"explain", "gelu_mlp", "--device", "cpu", "--input", "f32[2,768]", "--numerics", "eager"},
                {"compiled", "kernel fused_", "extern aten::addmm x2", "host code", "check passed"});
}

TEST(Commands, dump_prints_a_graph_that_opt_reads) {
  const Ran dumped = sinter({"dump", "gelu", "--device", "cpu", "--input", "f32[64]", "--what", "after:fuse"});
  EXPECT_EQ(dumped.code, 0);
  ASSERT_NE(dumped.err.find("graph @gelu"), std::string::npos) << dumped.err;
  const Folder folder;
  const std::string path = folder.file("gelu.ir", dumped.err.substr(dumped.err.find("graph @gelu")));
  expect_output({"opt", path}, {"fused @fused_div_erf_add_mul_mul"});
}

TEST(Commands, dump_takes_several_items_and_help) {
  const Ran dumped =
      sinter({"dump", "--what", "llvm,plan", "--what", "after:dce", "gelu", "--device", "cpu", "--input", "f32[64]"});
  EXPECT_EQ(dumped.code, 0) << dumped.err;
  for (const char* part : {"define", "after:dce", "gelu plan"}) {
    EXPECT_NE(dumped.err.find(part), std::string::npos) << part << "\n" << dumped.err;
  }
  expect_output({"dump", "gelu", "--what", "help"}, {"after:PASS"});
}

TEST(Commands, opt_runs_one_pass_on_a_file) {
  const Folder folder;
  const std::string path = folder.file(
      "chain.ir", "graph @g on cpu (%x: f32[4]) -> (%y) {\n  %a = mul %x, 2.0 : f32[4]\n  %y = exp %a : f32[4]\n}\n");
  expect_output({"opt", "--pass", "fuse", path}, {"graph @g on cpu", "fused @fused_mul_exp(%x)", "yield"});
  expect_output({"opt", "--pass", "dce", "--pass", "fuse", path}, {"fused @fused_mul_exp(%x)"});
  expect_output({"opt", path}, {"= mul %x, 2.0", "= exp %a"});
}

TEST(Commands, opt_plans_the_memory_of_a_fused_graph) {
  const Folder folder;
  const std::string path =
      folder.file("exp.ir", "graph @g on cpu (%x: f32[4]) -> (%y) {\n  %y = call aten.exp(%x) : f32[4]\n}\n");
  expect_output(
      {"opt", path, "--pass", "functionalize", "--pass", "decompose", "--pass", "fuse", "--pass", "plan_memory"},
      {"output", "launch"});
  const Ran ran = sinter({"opt", path, "--pass", "plan_memory", "--pass", "fuse"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("name it last"), std::string::npos) << ran.err;
}

TEST(Commands, opt_lists_the_passes_in_order) {
  expect_output({"opt", "--list"}, {"functionalize", "decompose", "fuse"});
}

TEST(Commands, bench_writes_every_documented_column) {
  const Folder folder;
  const std::string path = folder.path("rows.json");
  expect_output(
      {"bench", "gelu", "--device", "cpu", "--input", "f32[1024]", "--budget", "0.02", "--starts", "1", "--json", path},
      {"steady ms", "(wrong!)", "default", "reduce-overhead"});
  const json document = json::parse(text_of(path));
  EXPECT_TRUE(document.at("environment").contains("torch"));
  ASSERT_EQ(document.at("rows").size(), 2U);
  for (const json& row : document.at("rows")) {
    for (const char* column : {"model",
                               "device",
                               "dtype",
                               "shape",
                               "mode",
                               "eager_ms",
                               "steady_ms",
                               "latency_ms",
                               "cold_s",
                               "warm_s",
                               "eager_cold_s",
                               "starts",
                               "first_calls_s",
                               "phases",
                               "device_bytes",
                               "allocated_bytes",
                               "reserved_bytes",
                               "eager_device_bytes",
                               "eager_allocated_bytes",
                               "eager_reserved_bytes",
                               "kernels",
                               "eager_kernels",
                               "break_even_calls",
                               "max_error",
                               "rms_error",
                               "breaks"}) {
      EXPECT_TRUE(row.contains(column)) << column;
    }
    EXPECT_EQ(row.at("kernels"), 1);
    EXPECT_EQ(row.at("eager_kernels"), 5);
    EXPECT_EQ(row.at("breaks"), 0);
    EXPECT_GT(row.at("steady_ms").get<double>(), 0);
    EXPECT_EQ(row.at("first_calls_s").size(), 9U);
  }
}

TEST(Commands, bench_starts_every_first_call_in_as_many_processes_as_asked_for) {
  const Folder folder;
  const std::string path = folder.path("rows.json");
  expect_output({"bench", "gelu", "--device", "cpu", "--input", "f32[64]", "--mode", "default", "--budget", "0.02",
                 "--starts", "2", "--json", path},
                {"gelu "});
  const json row = json::parse(text_of(path)).at("rows").at(0);
  for (const char* start : {"cold_s", "warm_s", "eager_cold_s"}) {
    const auto seconds = row.at("starts").at(start).get<std::vector<double>>();
    ASSERT_EQ(seconds.size(), 2U) << start;
    EXPECT_DOUBLE_EQ(row.at(start).get<double>(), (seconds[0] + seconds[1]) / 2) << start;
  }
}

TEST(Commands, bench_counts_the_memory_of_weights_inputs_and_graphs_from_the_start_of_a_process) {
  const Folder folder;
  const std::string path = folder.path("rows.json");
  expect_output({"bench", "gelu", "--device", "cpu", "--input", "f32[1048576]", "--mode", "default", "--budget", "0.02",
                 "--starts", "1", "--json", path},
                {"gelu "});
  const json row = json::parse(text_of(path)).at("rows").at(0);
  constexpr int64_t input = int64_t{4} << 20;
  EXPECT_GE(row.at("eager_allocated_bytes").get<int64_t>(), 3 * input) << "input, an intermediate and the next one";
  EXPECT_GE(row.at("allocated_bytes").get<int64_t>(), 3 * input) << "the first call is eager's";
  EXPECT_GE(row.at("device_bytes").get<int64_t>(), 3 * input);
}

TEST(Commands, bench_trains_a_model_and_checks_what_the_steps_changed) {
  const Folder folder;
  const std::string path = folder.path("rows.json");
  for (const std::string optimizer : {"sgd", "adamw", "radam"}) {
    expect_output({"bench", "gelu_mlp", "--train", "--optimizer", optimizer, "--device", "cpu", "--input", "f32[4,768]",
                   "--mode", "default", "--budget", "0.02", "--starts", "1", "--json", path},
                  {"gelu_mlp ", "f32[4,768], i64[4]"});
    const json row = json::parse(text_of(path)).at("rows").at(0);
    EXPECT_EQ(row.at("train"), optimizer);
    EXPECT_EQ(row.at("breaks"), 0);
    EXPECT_GT(row.at("max_error").get<double>(), 0) << "of updates, in units of the updates";
    EXPECT_LT(row.at("max_error").get<double>(), 1);
  }
}

TEST(Commands, bench_trains_under_autocast) {
  const Folder folder;
  const std::string path = folder.path("rows.json");
  expect_output({"bench", "gelu_mlp", "--train", "--amp", "bf16", "--device", "cpu", "--input", "f32[4,768]", "--mode",
                 "default", "--budget", "0.02", "--starts", "1", "--json", path},
                {"gelu_mlp "});
  const json row = json::parse(text_of(path)).at("rows").at(0);
  EXPECT_EQ(row.at("amp"), "bf16");
  EXPECT_GT(row.at("max_error").get<double>(), 1e-4) << "bf16 gradients differ from float64's";
}

TEST(Commands, bench_compares_the_losses_of_as_many_steps_as_asked_for) {
  const Folder folder;
  const std::string path = folder.path("rows.json");
  const std::vector<std::string> bench = {"bench",   "gelu_mlp",   "--train", "--device", "cpu",
                                          "--input", "f32[4,768]", "--mode",  "default",  "--budget",
                                          "0.02",    "--starts",   "1",       "--json",   path};
  std::vector<std::string> with_losses = bench;
  with_losses.insert(with_losses.end(), {"--optimizer", "radam", "--losses", "12"});
  expect_output(with_losses, {"gelu_mlp ", "losses of 12 steps: "});
  const json losses = json::parse(text_of(path)).at("rows").at(0).at("losses");
  EXPECT_EQ(losses.at("steps"), 12);
  EXPECT_LT(losses.at("last").get<double>(), losses.at("first").get<double>()) << "a few batches are soon known";
  EXPECT_NEAR(losses.at("last").get<double>(), losses.at("eager_last").get<double>(), 1e-3);
  EXPECT_LT(losses.at("largest_difference").get<double>(), 1e-4);
  expect_output(bench, {"gelu_mlp "});
  EXPECT_FALSE(json::parse(text_of(path)).at("rows").at(0).contains("losses"));
}

TEST(Commands, bench_says_that_a_cpu_runs_no_gpu_kernels) {
  const Folder folder;
  const std::string path = folder.path("rows.json");
  expect_output({"bench", "gelu", "--device", "cpu", "--input", "f32[64]", "--mode", "default", "--budget", "0.02",
                 "--kernels", "--starts", "1", "--json", path},
                {"warm s", "no GPU kernels: gelu f32[64] default ran on the cpu\n"});
  EXPECT_TRUE(json::parse(text_of(path)).at("rows").at(0).at("kernel_table").is_null());
}

TEST(Commands, bench_gives_the_dtype_of_the_weights_where_inputs_have_none) {
  const Folder folder;
  const std::string path = folder.path("rows.json");
  expect_output({"bench",         "gpt",   "--device", "cpu",   "--dtype", "f64",    "--input",
                 "i64[1,4]<8192", "--set", "depth=1",  "--set", "steps=1", "--mode", "default",
                 "--budget",      "0.02",  "--starts", "1",     "--json",  path},
                {"gpt "});
  EXPECT_EQ(json::parse(text_of(path)).at("rows").at(0).at("dtype"), "f64");
}

TEST(Commands, run_is_the_same_with_ranges_for_a_profiler) {
  const Ran ran = sinter({"run", "gelu_mlp", "--device", "cpu", "--input", "f32[2,768]"}, {"SINTER_NVTX=1"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  EXPECT_NE(ran.out.find("check passed"), std::string::npos) << ran.out;
}

/// A row that a peer might have measured of the GELU that the tests run.
std::string peer_rows(const std::string& shape) {
  return json{{"environment", {{"torch", "0.0.1"}}},
              {"rows",
               {{{"model", "gelu"},
                 {"device", "cpu"},
                 {"dtype", "f32"},
                 {"shape", shape},
                 {"mode", "rival default"},
                 {"peer", "rival"},
                 {"eager_ms", 1.0},
                 {"steady_ms", 0.25},
                 {"cold_s", 2.0}}}}}
      .dump();
}

TEST(Commands, bench_joins_its_rows_with_peers) {
  const Folder folder;
  const std::string path = folder.path("joined.json");
  const std::string twin = folder.file("twin.json", peer_rows("f32[1024]"));
  const std::string other = folder.file("other.json", peer_rows("f32[7]"));
  expect_output({"bench", "gelu", "--device", "cpu", "--input", "f32[1024]", "--budget", "0.02", "--starts", "1",
                 "--peer", twin, "--peer", other, "--json", path},
                {"sinter default", "sinter reduce-overhead", "rival default", "warning: torch differs",
                 "not measured by sinter: gelu f32[7] cpu: rival default"});
  const json document = json::parse(text_of(path));
  EXPECT_EQ(document.at("rows").size(), 3U);
  EXPECT_EQ(document.at("unmatched").size(), 1U);
  const std::string page = folder.path("page.html");
  expect_output({"bench", "--from", path, "--peer", twin, "--html", page},
                {"sinter default", "rival default", "warning: "});
  const std::string html = text_of(page);
  EXPECT_EQ(html.rfind("<!DOCTYPE html>", 0), 0U);
  EXPECT_NE(html.find("rival default"), std::string::npos);
}

}  // namespace
}  // namespace sinter::test
