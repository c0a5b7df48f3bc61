#include "runtime/build_id.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace sinter::runtime {
namespace {

TEST(BuildId, is_read_from_the_running_program) {
  const std::string id = build_id("/proc/self/exe");
  EXPECT_EQ(id.size(), 40U) << id;
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos) << id;
}

TEST(BuildId, is_empty_for_what_is_no_program) {
  EXPECT_EQ(build_id("/no/such/file"), "");
  EXPECT_EQ(build_id("/dev/null"), "");
  EXPECT_EQ(build_id("/proc/self/status"), "");
}

TEST(BuildId, survives_a_program_cut_off_anywhere_or_with_any_wild_header) {
  std::string start(4096, '\0');
  std::ifstream("/proc/self/exe", std::ios::binary).read(start.data(), static_cast<std::streamsize>(start.size()));
  const std::string path = ::testing::TempDir() + "sinter-build-id";
  const auto write = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  };
  for (size_t size = 0; size < 1500; size += 7) {
    write(start.substr(0, size));
    EXPECT_TRUE(build_id(path).empty() || build_id(path).size() == 40U) << size;
  }
  for (size_t at = 16; at < 1500; at += 3) {
    std::string wild = start;
    wild.replace(at, 4, "\xff\xff\xff\x7f");
    write(wild);
    EXPECT_LE(build_id(path).size(), 2U << 16) << at;
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace sinter::runtime
