#include "bench/compare/results.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "compiler/support/errors.h"
#include "tests/compare/rows.h"

namespace sinter::test {
namespace {

std::string refusal(const Json& written) {
  try {
    (void)bench::parse_results(written, "rows.json");
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

std::string refusal_without(const char* field) {
  Json one = row("net", "default", 2.0);
  one.erase(field);
  return refusal(document({one}));
}

std::string refusal_with(const char* field, const Json& value) {
  Json one = row("net", "default", 2.0);
  one[field] = value;
  return refusal(document({row("net", "default", 2.0), one}));
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

/// What read_peer says of a file with this text.
std::string file_refusal(const std::string& text) {
  const auto path = std::filesystem::temp_directory_path() / ("sinter-rows-" + std::to_string(getpid()) + ".json");
  std::ofstream(path, std::ios::binary) << text;
  std::string said = "accepted";
  try {
    (void)bench::read_peer(path.string());
  } catch (const UserError& error) {
    said = error.what();
  }
  std::filesystem::remove(path);
  return said;
}

TEST(Results, documents_without_rows_are_refused) {
  expect_part(refusal(Json::object()), "rows.json: has no 'rows'");
  expect_part(refusal(Json::array()), "has no 'rows'");
  expect_part(refusal({{"rows", 3}}), "'rows' is not a list");
  expect_part(refusal({{"rows", Json::array()}}), "'rows' is empty");
  expect_part(refusal({{"rows", {3}}}), "row 1 is not an object");
  expect_part(refusal({{"rows", {row("net", "default", 1)}}, {"environment", 3}}), "'environment' is not an object");
}

TEST(Results, a_missing_field_is_named_with_its_row) {
  for (const char* field : {"model", "device", "dtype", "shape", "mode", "eager_ms", "steady_ms"})
    expect_part(refusal_without(field), std::string("row 1 has no '") + field + "'");
}

TEST(Results, a_field_of_a_wrong_type_is_named_with_its_row) {
  for (const char* field : {"model", "device", "dtype", "shape", "mode", "peer"})
    expect_part(refusal_with(field, 7), std::string("row 2: '") + field + "' is not a text");
  for (const char* field : {"eager_ms", "steady_ms"}) {
    for (const Json& value : {Json("1"), Json(nullptr), Json(0), Json(-1)})
      expect_part(refusal_with(field, value), std::string("row 2: '") + field + "' is not a number");
  }
  for (const char* field : {"cold_s", "latency_ms", "warm_s", "eager_cold_s", "verify_s", "peak_bytes", "device_bytes",
                            "eager_device_bytes", "reserved_bytes", "kernels", "max_error", "break_even_calls",
                            "unsynchronised_ms_wrong"}) {
    for (const Json& value : {Json("1"), Json(true), Json::array(), Json(-1)})
      expect_part(refusal_with(field, value), std::string("row 2: '") + field + "' is not a number");
    EXPECT_EQ(refusal_with(field, nullptr), "accepted") << field;
  }
  expect_part(refusal_with("freeze", "yes"), "'freeze' is not true or false");
  for (const char* field : {"kernel_table", "eager_kernel_table"}) {
    expect_part(refusal_with(field, Json::object()), std::string("'") + field + "' is not a list of objects");
    expect_part(refusal_with(field, Json::array({Json{{"us", "1"}}})), "'us' is not a number");
    EXPECT_EQ(refusal_with(field, nullptr), "accepted") << field;
  }
  expect_part(refusal_with("losses", 1), "'losses' is not an object");
  expect_part(refusal_with("losses", Json{{"largest_difference", "1"}}), "'largest_difference' is not a number");
  for (const Json& value : {Json("1"), Json({1, -1}), Json({"1"})})
    expect_part(refusal_with("first_calls_s", value), "'first_calls_s' is not a list of numbers");
}

TEST(Results, control_characters_never_reach_a_terminal) {
  expect_part(refusal_with("model", "\x1b[2J"), "without control characters");
}

TEST(Results, files_that_are_no_json_say_where) {
  expect_part(file_refusal(""), "is empty");
  expect_part(file_refusal(" \n"), "is empty");
  expect_part(file_refusal("{\"rows\": [\n{\"model\": "), "ends inside its JSON (line 2)");
  expect_part(file_refusal("model,steady_ms\nnet,1\n"), "is not JSON (line 1)");
  expect_part(file_refusal(std::string(4096, '\0')), "is not JSON");
  expect_part(file_refusal("{\"rows\": [1e999]}"), "too large");
  expect_part(file_refusal(std::string(100000, '[')), "nested deeper");
}

TEST(Results, files_that_cannot_be_read_are_named) {
  EXPECT_THROW((void)bench::read_results("nowhere.json"), UserError);
  EXPECT_THROW((void)bench::read_results(std::filesystem::temp_directory_path().string()), UserError);
}

TEST(Results, sinters_rows_in_a_peers_file_are_named_by_the_file) {
  const auto path = std::filesystem::temp_directory_path() / ("sinter-old-" + std::to_string(getpid()) + ".json");
  std::ofstream(path) << document({row("net", "default", 1)}).dump();
  const auto results = bench::read_peer(path.string());
  std::filesystem::remove(path);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].peer, path.stem().string());
}

TEST(Results, settings_of_a_model_make_it_another_model) {
  Json deep = row("vit", "default", 1);
  deep["settings"] = {"width=8", "depth=2"};
  deep["numerics"] = "eager";
  const bench::Row read = bench::parse_results(document({deep}), "x")[0].rows[0];
  EXPECT_EQ(read.model, "vit depth=2 width=8");
  EXPECT_EQ(read.mode, "default numerics=eager");
  expect_part(refusal_with("settings", "depth=2"), "'settings' is not a list of texts");
  expect_part(refusal_with("settings", {7}), "'settings' is not a list of texts");
}

TEST(Results, a_frozen_row_is_a_mode_of_its_own) {
  Json frozen = row("net", "default", 1);
  frozen["freeze"] = true;
  EXPECT_EQ(bench::parse_results(document({frozen}), "x")[0].rows[0].mode, "default freeze");
}

}  // namespace
}  // namespace sinter::test
