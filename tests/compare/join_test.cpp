#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/support/errors.h"
#include "tests/compare/rows.h"

namespace sinter::test {
namespace {

TEST(Join, rows_that_agree_in_model_device_kind_dtype_and_shape_make_one_case) {
  Json peer = row("net", "torch.compile default", 1.0, "torch.compile");
  peer["device"] = "cuda:1";
  const auto comparison =
      joined({document({row("net", "default", 2.0), row("net", "reduce-overhead", 0.5)}), document({peer})});
  ASSERT_EQ(comparison.cases.size(), 1U);
  const auto& contenders = comparison.cases[0].contenders;
  ASSERT_EQ(contenders.size(), 3U);
  EXPECT_EQ(contenders[0].name, "sinter default");
  EXPECT_EQ(contenders[1].name, "sinter reduce-overhead");
  EXPECT_EQ(contenders[2].name, "torch.compile default");
  EXPECT_EQ(contenders[2].speedup, 4.0);
  EXPECT_TRUE(comparison.unmatched.empty());
  EXPECT_TRUE(comparison.warnings.empty());
}

TEST(Join, another_model_dtype_shape_or_kind_of_device_does_not_match_and_is_listed) {
  std::vector<Json> others(4, row("net", "frozen", 1.0, "torchscript"));
  others[0]["model"] = "other";
  others[1]["dtype"] = "f32";
  others[2]["shape"] = "f16[8,3,224,224]";
  others[3]["device"] = "cpu";
  const auto comparison = joined({document({row("net", "default", 2.0)}), document(others)});
  EXPECT_EQ(comparison.cases[0].contenders.size(), 1U);
  ASSERT_EQ(comparison.unmatched.size(), 4U);
  EXPECT_EQ(comparison.unmatched[0].name, "torchscript frozen");
  const std::string text = to_text(comparison);
  EXPECT_NE(text.find("not measured by sinter: other f16[1,3,224,224] cuda:0: torchscript frozen 1 ms (file1.json)"),
            std::string::npos)
      << text;
  EXPECT_EQ(to_json(comparison).at("unmatched").size(), 4U);
}

TEST(Join, blanks_and_bounds_in_a_shape_are_no_difference) {
  Json own = row("gpt", "default", 2.0);
  own["shape"] = "i64[1,128]<30000, f16[1,4]";
  Json peer = row("gpt", "frozen", 2.0, "torchscript");
  peer["shape"] = "i64[1,128],f16[1,4]";
  EXPECT_TRUE(joined({document({own}), document({peer})}).unmatched.empty());
}

TEST(Join, a_version_flag_or_device_that_differs_is_a_warning_in_text_and_json) {
  const auto comparison = joined(
      {document({row("net", "default", 2.0)}, {{"torch", "2.11.0"}, {"tf32_cudnn", true}, {"gpu", "NVIDIA H200"}}),
       document({row("net", "frozen", 1.0, "torchscript")},
                {{"torch", "2.10.0+cu130"}, {"tf32_cudnn", false}, {"gpu", "NVIDIA H200"}})});
  ASSERT_EQ(comparison.warnings.size(), 2U);
  const std::string text = to_text(comparison);
  for (const char* line : {"warning: tf32_cudnn differs: true for sinter, false for torchscript (file1.json)\n",
                           "warning: torch differs: 2.11.0 for sinter, 2.10.0 for torchscript (file1.json)\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << text;
  }
  EXPECT_EQ(to_json(comparison).at("warnings").size(), 2U);
}

TEST(Join, the_build_of_the_same_version_is_no_difference) {
  const auto comparison = joined({document({row("net", "default", 2.0)}, {{"torch", "2.11.0"}}),
                                  document({row("net", "frozen", 1.0, "ts")}, {{"torch", "2.11.0+cu130"}})});
  EXPECT_TRUE(comparison.warnings.empty());
}

TEST(Join, a_file_that_says_nothing_of_its_machine_is_a_warning) {
  const auto comparison = joined(
      {document({row("net", "default", 2.0)}), document({row("net", "frozen", 1.0, "torchscript")}, Json::object())});
  ASSERT_EQ(comparison.warnings.size(), 1U);
  EXPECT_NE(comparison.warnings[0].find("torchscript does not say versions"), std::string::npos);
}

TEST(Join, eager_that_took_another_time_beside_a_peer_is_a_warning) {
  Json peer = row("net", "frozen", 1.0, "torchscript");
  peer["eager_ms"] = 8.0;
  const auto comparison = joined({document({row("net", "default", 2.0)}), document({peer})});
  ASSERT_EQ(comparison.warnings.size(), 1U);
  EXPECT_NE(comparison.warnings[0].find("eager took 8 ms beside torchscript frozen"), std::string::npos);
  EXPECT_EQ(comparison.cases[0].contenders[1].speedup, 4.0) << "against sinter's own eager";
}

TEST(Join, joined_json_is_read_back_as_it_was) {
  const auto once =
      joined({document({row("net", "default", 2.0)}),
              document({row("net", "frozen", 1.0, "torchscript"), row("alien", "frozen", 1.0, "torchscript")},
                       {{"torch", "2.9.0"}})});
  const auto again = joined({to_json(once)});
  EXPECT_EQ(to_json(again).at("rows"), to_json(once).at("rows"));
  EXPECT_EQ(to_json(again).at("unmatched"), to_json(once).at("unmatched"));
  ASSERT_EQ(again.warnings.size(), 1U);
  EXPECT_NE(again.warnings[0].find("2.9.0 for torchscript"), std::string::npos);
}

TEST(Join, without_rows_of_sinter_there_is_nothing_to_join_with) {
  EXPECT_THROW((void)joined({document({row("net", "frozen", 1.0, "torchscript")})}), UserError);
}

TEST(Join, the_time_of_n_calls_counts_the_first_three_as_they_were) {
  Json source = row("net", "default", 2.0);
  source["verify_s"] = 0.03;
  source["first_replay_s"] = 0.01;
  const bench::Row one = joined({document({source})}).cases[0].contenders[0].row;
  EXPECT_DOUBLE_EQ(total_seconds(one, 1).value(), 0.5);
  EXPECT_DOUBLE_EQ(total_seconds(one, 2).value(), 0.53);
  EXPECT_DOUBLE_EQ(total_seconds(one, 3).value(), 0.54);
  EXPECT_DOUBLE_EQ(total_seconds(one, 103).value(), 0.74);
  EXPECT_DOUBLE_EQ(eager_total_seconds(one, 101), 0.6);
}

TEST(Join, both_eagers_stand_in_the_table_and_a_difference_of_more_than_15_percent_is_said_there) {
  Json far = row("net", "default", 1.0, "torchscript");
  far["eager_ms"] = 5.0;
  Json near = row("net", "frozen", 1.0, "rival");
  near["eager_ms"] = 4.1;
  const std::string text = to_text(joined({document({row("net", "default", 2.0)}), document({far}), document({near})}));
  EXPECT_NE(text.find("eager (LibTorch)"), std::string::npos) << text;
  EXPECT_NE(text.find("eager beside torchscript"), std::string::npos) << text;
  EXPECT_NE(text.find("! eager took 5 ms beside torchscript default, +25 % of the 4 ms"), std::string::npos) << text;
  EXPECT_EQ(text.find("beside rival frozen"), std::string::npos) << "2.5 % is no difference";
}

TEST(Join, a_first_call_quicker_than_eagers_is_shown_as_a_negative_difference) {
  Json source = row("net", "default", 2.0);
  source["cold_s"] = 0.125;
  EXPECT_NE(to_text(joined({document({source})})).find("-0.075"), std::string::npos);
}

TEST(Join, kernel_tables_of_all_who_have_one_stand_side_by_side) {
  const Json kernels = Json::array({Json{{"name", "gemm"}, {"count", 2}, {"us", 10.0}}});
  Json own = row("net", "default", 2.0);
  own["kernel_table"] = own["eager_kernel_table"] = kernels;
  Json peer = row("net", "frozen", 1.0, "rival");
  peer["kernel_table"] = kernels;
  const std::string text = to_text(joined({document({own}), document({peer, row("net", "other", 1.0, "rival")})}));
  EXPECT_NE(text.find("eager, longest kernels"), std::string::npos) << text;
  EXPECT_NE(text.find("sinter default, longest kernels"), std::string::npos) << text;
  EXPECT_NE(text.find("rival frozen, longest kernels"), std::string::npos) << text;
  EXPECT_EQ(text.find("rival other, longest kernels"), std::string::npos) << text;
}

/// What stands behind `name` in the last line that begins with it.
std::string last_line_of(const std::string& text, const std::string& name) {
  const size_t found = text.rfind("\n  " + name + " ");
  if (found == std::string::npos) return "none in " + text;
  const size_t begin = found + 3 + name.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(Join, training_steps_have_a_table_of_their_own) {
  Json own = row("net", "default", 2.0);
  own["train"] = "radam";
  own["unsynchronised_ms_wrong"] = 0.25;
  own["allocated_bytes"] = 3 << 20;
  own["eager_allocated_bytes"] = 4 << 20;
  own["kernel_table"] = {{{"name", "gemm"}, {"count", 2}, {"us", 1500.0}},
                         {{"name", "add"}, {"count", 1}, {"us", 250}}};
  own["eager_kernel_table"] = Json::array({Json{{"name", "gemm"}, {"count", 2}, {"us", 3500.0}}});
  own["losses"] = {{"steps", 50}, {"largest_difference", 0.002}};
  Json peer = row("net", "rival default", 1.0, "rival");
  peer["train"] = "radam";
  peer["eager_ms"] = 5.0;
  const std::string text = to_text(joined({document({own, row("net", "default", 2.0)}), document({peer})}));
  EXPECT_EQ(last_line_of(text.substr(0, text.find("longest kernels")), "sinter default"),
            fmt::format("{:>30} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>12}", "2", "2.00x", "1.75", "0.25", "3.0",
                        "0.75x", "0.5", "0.002"));
  EXPECT_NE(text.find("a training step"), std::string::npos) << text;
  EXPECT_EQ(text.find("a training step"), text.rfind("a training step")) << "the other case trains nothing";
}

TEST(Join, rows_that_are_frozen_say_so_and_training_is_a_model_of_its_own) {
  Json frozen = row("net", "default", 2.0);
  frozen["freeze"] = true;
  Json training = row("net", "default", 2.0);
  training["train"] = "sgd";
  training["amp"] = "f16";
  const auto comparison = joined({document({frozen, training})});
  ASSERT_EQ(comparison.cases.size(), 2U);
  EXPECT_EQ(comparison.cases[0].contenders[0].name, "sinter default freeze");
  EXPECT_EQ(comparison.cases[1].model, "net train=sgd amp=f16");
}

}  // namespace
}  // namespace sinter::test
