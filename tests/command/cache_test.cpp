// The kernel cache between processes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/command/program.h"

namespace sinter::test {
namespace {

using nlohmann::json;

/// What a run on the CPU says of its kernels, and the text it printed.
struct Origins {
  json counts;
  json notes;
  std::string text;
};

Origins run_with(const std::string& cache, const std::vector<std::string>& environment = {}) {
  const Folder folder;
  const std::string path = folder.path("report.json");
  std::vector<std::string> settings = environment;
  settings.push_back("SINTER_CACHE=" + cache);
  const Ran ran = sinter({"run", "gelu", "--device", "cpu", "--input", "f32[4,768]", "--json", path}, settings);
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  const json entry = json::parse(text_of(path)).at("entries").at(0);
  json notes = json::array();
  for (const std::string note : entry.at("notes")) {
    if (note.starts_with("kernel cache")) notes.push_back(note);
  }
  return {entry.at("kernel_origins"), notes, ran.out};
}

TEST(KernelCache, a_second_process_builds_nothing) {
  const Folder folder;
  const Origins first = run_with(folder.path("cache"));
  const int64_t built = first.counts.at("built");
  EXPECT_GT(built, 0);
  EXPECT_EQ(first.counts.at("disk"), 0);
  EXPECT_EQ(first.counts.at("misses"), json({{"absent", built}}));
  EXPECT_NE(first.text.find("check passed"), std::string::npos) << first.text;

  const Origins second = run_with(folder.path("cache"));
  EXPECT_EQ(second.counts.at("built"), 0);
  EXPECT_EQ(second.counts.at("disk"), built);
  EXPECT_EQ(second.counts.at("misses"), json::object());
  EXPECT_NE(second.text.find("check passed"), std::string::npos) << second.text;
  EXPECT_NE(second.text.find("0 built"), std::string::npos) << second.text;
}

TEST(KernelCache, damaged_entries_are_built_again_and_counted_by_reason) {
  const Folder folder;
  const Origins first = run_with(folder.path("cache"));
  for (const auto& file : std::filesystem::directory_iterator(folder.path("cache"))) {
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  }
  const Origins second = run_with(folder.path("cache"));
  EXPECT_EQ(second.counts.at("misses"), json({{"damaged: lengths", first.counts.at("built")}}));
  EXPECT_NE(second.text.find("check passed"), std::string::npos) << second.text;
  EXPECT_EQ(run_with(folder.path("cache")).counts.at("disk"), first.counts.at("built")) << "what was damaged is healed";
}

TEST(KernelCache, a_folder_that_cannot_be_made_is_noted_once) {
  const Folder folder;
  const Origins ran = run_with(folder.file("file", "no folder"));
  EXPECT_NE(ran.text.find("check passed"), std::string::npos) << ran.text;
  ASSERT_EQ(ran.notes.size(), 1U) << ran.notes;
  EXPECT_EQ(ran.notes.at(0).get<std::string>().find("kernel cache: cannot write to "), 0U) << ran.notes;
}

TEST(KernelCache, says_when_it_is_off) {
  const Origins ran = run_with("off");
  EXPECT_EQ(ran.counts.at("misses"), json({{"disabled: SINTER_CACHE=off", ran.counts.at("built")}}));
  EXPECT_TRUE(ran.notes.empty()) << ran.notes;
}

TEST(KernelCache, a_limit_that_is_no_number_turns_it_off) {
  const Folder folder;
  const Origins ran = run_with(folder.path("cache"), {"SINTER_CACHE_LIMIT=lots"});
  EXPECT_EQ(ran.counts.at("disk"), 0);
  EXPECT_NE(ran.counts.at("misses").dump().find("'lots', which is no number of MiB"), std::string::npos) << ran.counts;
  EXPECT_FALSE(std::filesystem::exists(folder.path("cache")));
}

TEST(KernelCache, a_planted_fault_leaves_nothing_behind) {
  const Folder folder;
  const std::string cache = folder.path("cache");
  const Ran broken =
      sinter({"run", "gelu", "--device", "cpu", "--input", "f32[4,768]"},
             {"SINTER_CACHE=" + cache, "SINTER_FAULT=kernel_text", "SINTER_DUMP_DIR=" + folder.path("")});
  EXPECT_EQ(broken.code, 0) << broken.out << broken.err;
  const Ran wrong = sinter({"run", "gelu", "--device", "cpu", "--input", "f32[4,768]"},
                           {"SINTER_CACHE=" + cache, "SINTER_FAULT=lost_op"});
  EXPECT_EQ(wrong.code, 1) << wrong.out;
  EXPECT_NE(run_with(cache).text.find("check passed"), std::string::npos);
}

}  // namespace
}  // namespace sinter::test
