#include "runtime/cuda/cubins.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <set>
#include <string_view>

#include "compiler/support/errors.h"

namespace sinter::runtime {
namespace {

namespace fs = std::filesystem;

KernelSource source_of(const std::string& name, const std::string& body) {
  KernelSource source;
  source.name = name;
  source.text = "static __device__ float twice(float x) { return 2 * x; }\nextern \"C\" __global__ void " + name +
                "(const float* x, float* y) { y[threadIdx.x] = " + body + "; }";
  return source;
}

/// A folder of its own, in which any number of processes, as builders stand for them, keep their code.
class NvrtcCubins : public ::testing::Test {
 protected:
  NvrtcCubins() : folder_(fs::temp_directory_path() / ("sinter_cubins_" + std::to_string(::getpid()))) {}
  ~NvrtcCubins() override {
    for (const std::string& file : entries()) ::remove(file.c_str());
    ::rmdir(folder_.c_str());
  }

  /// Files of the cache. Not by std::filesystem's iterator, of which LibTorch exports another one.
  [[nodiscard]] std::vector<std::string> entries() const {
    std::vector<std::string> files;
    DIR* folder = ::opendir(folder_.c_str());
    while (const dirent* file = folder == nullptr ? nullptr : ::readdir(folder)) {
      if (file->d_name[0] != '.') files.push_back(folder_ / file->d_name);
    }
    if (folder != nullptr) ::closedir(folder);
    return files;
  }

  [[nodiscard]] DiskCache disk() const {
    DiskCacheSettings settings;
    settings.folder = folder_;
    return DiskCache(settings);
  }

  static std::vector<Cached<Cubin>> build(CubinBuilder& builder, const std::vector<KernelSource>& sources,
                                          int sm = 90) {
    std::vector<const KernelSource*> pointers;
    for (const KernelSource& source : sources) pointers.push_back(&source);
    return builder.build(pointers, sm, [](size_t, const auto&, auto, auto) {});
  }

  static bool has_symbol(const Cubin& cubin, std::string_view name) {
    return std::string_view(cubin.code->data(), cubin.code->size()).find(name) != std::string_view::npos;
  }

  fs::path folder_;
};

std::vector<KernelSource> six_kernels() {
  std::vector<KernelSource> sources;
  for (const char* name : {"first", "second", "third"}) {
    for (const char* body : {"twice(x[0])", "twice(x[1]) + 1"}) sources.push_back(source_of(name, body));
  }
  return sources;
}

TEST_F(NvrtcCubins, groups_have_no_name_twice_and_no_more_than_asked) {
  const std::vector<std::string> names{"a", "b", "a", "c", "a", "b", "d"};
  for (const size_t most : {1, 2, 3, 8}) {
    std::set<size_t> seen;
    for (const auto& group : group_kernels(names, most)) {
      EXPECT_LE(group.size(), most);
      std::set<std::string> in_group;
      for (const size_t i : group) {
        EXPECT_TRUE(in_group.insert(names[i]).second) << names[i];
        EXPECT_TRUE(seen.insert(i).second);
      }
    }
    EXPECT_EQ(seen.size(), names.size());
  }
  EXPECT_EQ(group_kernels(names, 8).size(), 3u) << "as many as there are kernels called a";
}

TEST_F(NvrtcCubins, several_kernels_share_code_and_keep_their_names) {
  DiskCache cache = disk();
  CubinBuilder builder(cache, 1);
  const auto sources = six_kernels();
  const auto cubins = build(builder, sources);
  std::set<const CubinCode*> codes;
  for (size_t i = 0; i < sources.size(); ++i) {
    EXPECT_FALSE(cubins[i].shared);
    EXPECT_FALSE(cubins[i].built->provenance.from_disk);
    EXPECT_EQ(cubins[i].built->provenance.cache, "absent");
    EXPECT_TRUE(has_symbol(*cubins[i].built, ".text." + sources[i].name));
    codes.insert(cubins[i].built->code.get());
  }
  EXPECT_EQ(codes.size(), 2u) << "a program for each kernel of a name";
}

TEST_F(NvrtcCubins, equal_texts_are_built_once_per_architecture) {
  DiskCache cache = disk();
  CubinBuilder builder(cache, 2);
  KernelSource source = source_of("shared_kernel", "twice(x[2])");
  const auto first = build(builder, {source});
  source.comment = "stands for something else";
  const auto second = build(builder, {source, source_of("other", "x[0]")});
  const auto other = build(builder, {source}, 80);
  EXPECT_FALSE(first[0].shared);
  EXPECT_TRUE(second[0].shared);
  EXPECT_EQ(second[0].seconds, 0);
  EXPECT_EQ(first[0].built, second[0].built);
  EXPECT_FALSE(second[1].shared);
  EXPECT_FALSE(other[0].shared);
}

TEST_F(NvrtcCubins, a_later_process_finds_them_all_however_it_asks) {
  DiskCache cache = disk();
  const auto sources = six_kernels();
  CubinBuilder first(cache, 1);
  build(first, sources);
  CubinBuilder all(cache, 1), one(cache, 1);
  const auto again = build(all, sources);
  std::set<const CubinCode*> codes;
  for (size_t i = 0; i < sources.size(); ++i) {
    EXPECT_EQ(again[i].built->provenance.cache, "hit");
    EXPECT_TRUE(has_symbol(*again[i].built, ".text." + sources[i].name));
    codes.insert(again[i].built->code.get());
  }
  EXPECT_EQ(codes.size(), 2u) << "read once";
  EXPECT_TRUE(build(one, {sources[3]})[0].built->provenance.from_disk);
}

TEST_F(NvrtcCubins, those_whose_program_is_gone_are_built_again) {
  DiskCache cache = disk();
  const auto sources = six_kernels();
  CubinBuilder first(cache, 1);
  build(first, sources);
  // Programs are the largest entries: they hold code for three kernels.
  auto files = entries();
  ASSERT_EQ(files.size(), 8u);
  std::ranges::sort(files, std::greater(), [](const std::string& file) { return fs::file_size(file); });
  ::remove(files[0].c_str());
  ::remove(files[1].c_str());
  CubinBuilder second(cache, 1);
  for (const auto& cubin : build(second, sources)) EXPECT_EQ(cubin.built->provenance.cache, "absent");
  CubinBuilder third(cache, 1);
  for (const auto& cubin : build(third, sources)) EXPECT_EQ(cubin.built->provenance.cache, "hit");
}

TEST_F(NvrtcCubins, one_that_does_not_compile_is_named_and_the_others_are_built) {
  DiskCache cache = disk();
  CubinBuilder builder(cache, 1);
  auto sources = six_kernels();
  sources.push_back(source_of("broken", "no_such_name"));
  try {
    build(builder, sources);
    FAIL() << "it compiled";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("kernel broken"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("no_such_name"), std::string::npos) << error.what();
  }
  sources.pop_back();
  for (const auto& cubin : build(builder, sources)) EXPECT_TRUE(cubin.shared);
  EXPECT_THROW(build(builder, {source_of("broken", "no_such_name")}), InternalError) << "tried again";
}

}  // namespace
}  // namespace sinter::runtime
