#include "runtime/disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace sinter::runtime {
namespace {

namespace fs = std::filesystem;

std::vector<char> chars(std::string_view text) { return {text.begin(), text.end()}; }

CacheKey key_of(const std::string& text) { return {"cuda", "nvrtc 1", "sm_90", text}; }

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

void write_to(const fs::path& file, std::string_view text) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
  ::chmod(file.c_str(), 0600);
}

/// Every test has a folder of its own, which the cache makes.
class DiskCacheTest : public ::testing::Test {
 protected:
  DiskCacheTest() {
    std::string name = (fs::temp_directory_path() / "sinter-cache-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error(name + " cannot be made");
    root_ = name;
    settings_.folder = root_ / "made" / "cache";
  }
  ~DiskCacheTest() override {
    const auto remove = [](const char* path, const struct stat*, int, FTW*) { return ::remove(path); };
    ::nftw(root_.c_str(), remove, 8, FTW_DEPTH | FTW_PHYS);
  }

  [[nodiscard]] DiskCache cache() const { return DiskCache(settings_); }
  [[nodiscard]] size_t files() const {
    // Not std::filesystem's iterator, of which LibTorch exports another one.
    DIR* folder = ::opendir(settings_.folder.c_str());
    size_t count = 0;
    while (const dirent* file = ::readdir(folder)) count += file->d_name[0] == '.' ? 0 : 1;
    ::closedir(folder);
    return count;
  }
  /// Bytes of the entry of a key with a payload of `payload` bytes.
  static uint64_t size_of(const CacheKey& key, size_t payload) {
    return encode_record(key, std::vector<char>(payload)).size();
  }

  fs::path root_;
  DiskCacheSettings settings_;
};

TEST_F(DiskCacheTest, finds_what_was_stored_by_another_instance) {
  const std::vector<char> payload = chars(std::string_view("\0machine\ncode\xff", 14));
  EXPECT_EQ(cache().find(key_of("a")).reason(), "absent");
  EXPECT_EQ(cache().store(key_of("a"), payload), "");
  const CacheLookup found = cache().find(key_of("a"));
  EXPECT_EQ(found.reason(), "hit");
  EXPECT_EQ(found.payload, payload);
  EXPECT_EQ(files(), 1U);
}

TEST_F(DiskCacheTest, holds_empty_payloads_and_texts) {
  EXPECT_EQ(cache().store(CacheKey{}, {}), "");
  EXPECT_TRUE(cache().find(CacheKey{}).hit());
}

TEST_F(DiskCacheTest, replaces_an_entry_of_the_same_key) {
  EXPECT_EQ(cache().store(key_of("a"), chars("old")), "");
  EXPECT_EQ(cache().store(key_of("a"), chars("new")), "");
  EXPECT_EQ(cache().find(key_of("a")).payload, chars("new"));
  EXPECT_EQ(files(), 1U);
}

TEST_F(DiskCacheTest, keeps_its_files_to_this_user) {
  EXPECT_EQ(cache().store(key_of("a"), chars("code")), "");
  struct stat status{};
  ASSERT_EQ(::stat(settings_.folder.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  ASSERT_EQ(::stat(cache().file_of(key_of("a")).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(DiskCacheTest, every_part_of_a_key_matters) {
  const CacheKey key{"cuda", "nvrtc 1", "sm_90", "text"};
  EXPECT_EQ(cache().store(key, chars("code")), "");
  const CacheKey kind{"llvm", "nvrtc 1", "sm_90", "text"};
  const CacheKey target{"cuda", "nvrtc 1", "sm_80", "text"};
  const CacheKey text{"cuda", "nvrtc 1", "sm_90", "texT"};
  const CacheKey shifted{"cuda", "nvrtc 1", "sm_90t", "ext"};
  for (const CacheKey& other : {kind, target, text, shifted}) {
    EXPECT_EQ(cache().find(other).reason(), "absent") << other.kind << other.target << other.text;
  }
  const CacheKey compiler{"cuda", "nvrtc 2", "sm_90", "text"};
  EXPECT_EQ(cache().find(compiler).reason(), "compiler changed");
  EXPECT_EQ(cache().store(compiler, chars("better code")), "");
  EXPECT_EQ(cache().find(compiler).payload, chars("better code"));
  EXPECT_EQ(files(), 1U) << "what the older compiler made is replaced";
}

TEST_F(DiskCacheTest, compares_the_key_in_full_when_names_collide) {
  EXPECT_EQ(cache().store(key_of("a"), chars("code of a")), "");
  const CacheKey wanted = key_of("b");
  fs::rename(cache().file_of(key_of("a")), cache().file_of(wanted));
  EXPECT_EQ(cache().find(wanted).reason(), "another key of the same name");
  EXPECT_EQ(cache().store(wanted, chars("code of b")), "");
  EXPECT_EQ(cache().find(wanted).payload, chars("code of b"));
}

TEST_F(DiskCacheTest, one_flipped_bit_anywhere_is_damage) {
  const CacheKey key = key_of("short text");
  EXPECT_EQ(cache().store(key, chars("machine code")), "");
  const std::string whole = text_of(cache().file_of(key));
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int bit : {0, 3, 7}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      write_to(cache().file_of(key), damaged);
      const CacheLookup found = cache().find(key);
      EXPECT_EQ(found.answer, CacheAnswer::damaged) << "bit " << bit << " of byte " << at;
      EXPECT_TRUE(found.payload.empty());
    }
  }
}

TEST_F(DiskCacheTest, an_entry_cut_off_anywhere_is_damage) {
  const CacheKey key = key_of("short text");
  EXPECT_EQ(cache().store(key, chars("machine code")), "");
  const std::string whole = text_of(cache().file_of(key));
  for (size_t size = 0; size < whole.size(); ++size) {
    write_to(cache().file_of(key), whole.substr(0, size));
    EXPECT_EQ(cache().find(key).answer, CacheAnswer::damaged) << size << " bytes are left";
  }
  write_to(cache().file_of(key), whole + "x");
  EXPECT_EQ(cache().find(key).reason(), "damaged: lengths");
}

TEST_F(DiskCacheTest, zeros_from_anywhere_to_the_end_are_damage) {
  const CacheKey key = key_of("short text");
  EXPECT_EQ(cache().store(key, chars("machine code")), "");
  const std::string whole = text_of(cache().file_of(key));
  for (size_t from = 0; from < whole.size(); ++from) {
    write_to(cache().file_of(key), whole.substr(0, from) + std::string(whole.size() - from, '\0'));
    EXPECT_EQ(cache().find(key).answer, CacheAnswer::damaged) << "zeros from byte " << from;
  }
}

TEST_F(DiskCacheTest, lengths_that_lie_are_damage) {
  const CacheKey key = key_of("short text");
  EXPECT_EQ(cache().store(key, chars("machine code")), "");
  const std::string whole = text_of(cache().file_of(key));
  const std::vector<std::string> lies{std::string(8, '\xff'), std::string(7, '\xff') + "\x7f",
                                      "\x01" + std::string(7, '\0'), std::string(7, '\0') + "\x80"};
  for (size_t field = 16; field < record_header_size; field += 8) {
    for (const std::string& lie : lies) {
      std::string damaged = whole;
      damaged.replace(field, 8, lie);
      write_to(cache().file_of(key), damaged);
      EXPECT_EQ(cache().find(key).reason(), "damaged: lengths") << "at " << field;
    }
  }
  // Together they add up to the size of the file, modulo 2^64.
  std::string damaged = whole;
  damaged.replace(16, 16, std::string(7, '\0') + "\x80" + std::string(7, '\0') + "\x80");
  write_to(cache().file_of(key), damaged);
  EXPECT_EQ(cache().find(key).reason(), "damaged: lengths");
}

TEST_F(DiskCacheTest, a_file_larger_than_the_limit_is_not_read) {
  settings_.limit = 1 << 16;
  EXPECT_EQ(cache().store(key_of("a"), chars("code")), "");
  ASSERT_EQ(::truncate(cache().file_of(key_of("a")).c_str(), off_t{1} << 40), 0);
  EXPECT_EQ(cache().find(key_of("a")).reason(), "damaged: larger than the cache's limit");
}

TEST_F(DiskCacheTest, other_formats_are_damage_that_is_told_apart) {
  EXPECT_EQ(cache().store(key_of("a"), chars("code")), "");
  const fs::path file = cache().file_of(key_of("a"));
  std::string text = text_of(file);
  text[8] = 2;
  write_to(file, text);
  EXPECT_EQ(cache().find(key_of("a")).reason(), "damaged: format version");
  write_to(file, std::string(4096, '\0'));
  EXPECT_EQ(cache().find(key_of("a")).reason(), "damaged: magic");
  write_to(file, "");
  EXPECT_EQ(cache().find(key_of("a")).reason(), "damaged: truncated");
}

TEST_F(DiskCacheTest, trusts_no_link_no_pipe_and_no_folder) {
  const CacheKey key = key_of("a");
  const fs::path file = cache().file_of(key);
  EXPECT_EQ(cache().store(key, chars("code")), "");
  const fs::path elsewhere = root_ / "elsewhere";
  fs::rename(file, elsewhere);
  fs::create_symlink(elsewhere, file);
  EXPECT_EQ(cache().find(key).reason(), "not trusted: a symbolic link");
  EXPECT_EQ(cache().store(key, chars("new code")), "");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(file))) << "the link is replaced, not followed";
  EXPECT_EQ(cache().find(key).payload, chars("new code"));

  fs::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(cache().find(key).reason(), "not trusted: not a regular file");
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_EQ(cache().find(key).reason(), "not trusted: not a regular file");
  EXPECT_NE(cache().store(key, chars("code")), "");
  EXPECT_EQ(files(), 1U) << "no unfinished file is left";
}

TEST_F(DiskCacheTest, trusts_no_file_that_others_may_write) {
  const CacheKey key = key_of("a");
  EXPECT_EQ(cache().store(key, chars("code")), "");
  for (const mode_t mode : {0620, 0602, 0666}) {
    ASSERT_EQ(::chmod(cache().file_of(key).c_str(), mode), 0);
    EXPECT_EQ(cache().find(key).reason(), "not trusted: others may write to it");
  }
  ASSERT_EQ(::chmod(cache().file_of(key).c_str(), 0644), 0);
  EXPECT_TRUE(cache().find(key).hit());
}

TEST_F(DiskCacheTest, trusts_no_file_of_another_user) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  EXPECT_EQ(cache().store(key_of("a"), chars("code")), "");
  ASSERT_EQ(::chown(cache().file_of(key_of("a")).c_str(), 12345, 12345), 0);
  EXPECT_EQ(cache().find(key_of("a")).reason(), "not trusted: another user's file");
}

TEST_F(DiskCacheTest, a_folder_that_cannot_be_made_costs_nothing_but_the_entries) {
  write_to(root_ / "file", "no folder");
  settings_.folder = root_ / "file" / "cache";
  EXPECT_EQ(cache().find(key_of("a")).reason(), "unreadable: Not a directory");
  EXPECT_EQ(cache().store(key_of("a"), chars("code")),
            "cannot write to " + settings_.folder.string() + ": Not a directory");
  settings_.folder = root_ / "file";
  EXPECT_EQ(cache().find(key_of("a")).reason(), "unreadable: Not a directory");
  EXPECT_NE(cache().store(key_of("a"), chars("code")), "");
  EXPECT_EQ(text_of(root_ / "file"), "no folder");
}

TEST_F(DiskCacheTest, a_disk_that_fills_up_leaves_nothing_behind) {
  EXPECT_EQ(cache().store(key_of("a"), chars("old code")), "");
  settings_.write = [](int file, const void* bytes, size_t count) -> ssize_t {
    if (count > 60) return ::write(file, bytes, 60);
    errno = ENOSPC;
    return -1;
  };
  EXPECT_EQ(cache().store(key_of("a"), chars("new code")),
            "cannot write to " + settings_.folder.string() + ": No space left on device");
  EXPECT_EQ(files(), 1U);
  EXPECT_EQ(cache().find(key_of("a")).payload, chars("old code"));
}

TEST_F(DiskCacheTest, survives_writes_that_are_short_or_interrupted) {
  settings_.write = [](int file, const void* bytes, size_t count) -> ssize_t {
    static int calls = 0;
    if (++calls % 3 != 0) return ::write(file, bytes, std::min<size_t>(count, 7));
    errno = EINTR;
    return -1;
  };
  EXPECT_EQ(cache().store(key_of("a"), chars("machine code")), "");
  EXPECT_EQ(cache().find(key_of("a")).payload, chars("machine code"));
}

TEST_F(DiskCacheTest, evicts_what_was_used_least_recently_down_to_three_quarters) {
  const uint64_t size = size_of(key_of("k0"), 1000);
  settings_.limit = 8 * size;
  DiskCache cache(settings_);
  const auto used_at = [&](int entry, int seconds) {
    const struct timespec time{1'000'000 + seconds, 0};
    const struct timespec times[2] = {time, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, cache.file_of(key_of("k" + std::to_string(entry))).c_str(), times, 0), 0);
  };
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(cache.store(key_of("k" + std::to_string(i)), std::vector<char>(1000)), "");
    used_at(i, i);
  }
  EXPECT_EQ(files(), 8U) << "the limit is not exceeded yet";
  used_at(0, 100);
  EXPECT_TRUE(cache.find(key_of("k2")).hit()) << "a hit is a use";
  write_to(settings_.folder / "notes.txt", std::string(10000, 'x'));
  EXPECT_EQ(cache.store(key_of("k8"), std::vector<char>(1000)), "");
  for (const int kept : {0, 2, 5, 6, 7, 8}) {
    EXPECT_TRUE(cache.find(key_of("k" + std::to_string(kept))).hit()) << kept;
  }
  for (const int gone : {1, 3, 4}) {
    EXPECT_EQ(cache.find(key_of("k" + std::to_string(gone))).reason(), "absent") << gone;
  }
  EXPECT_TRUE(fs::exists(settings_.folder / "notes.txt")) << "files that are no entries are left alone";
}

TEST_F(DiskCacheTest, notices_that_other_processes_fill_it) {
  const uint64_t size = size_of(key_of("k00"), 1000);
  settings_.limit = 64 * size;
  DiskCache mine(settings_);
  for (int i = 10; i < 90; ++i) {
    EXPECT_EQ(cache().store(key_of("k" + std::to_string(i)), std::vector<char>(1000)), "");
    EXPECT_EQ(mine.store(key_of("m" + std::to_string(i)), std::vector<char>(1000)), "");
  }
  EXPECT_LE(files(), 64U + 4U) << "a process may exceed the limit by a sixteenth";
}

TEST_F(DiskCacheTest, is_not_looked_through_before_much_was_written) {
  const uint64_t size = size_of(key_of("a"), 1000);
  settings_.limit = 2 * size;
  settings_.unchecked = 3 * size;
  DiskCache cache(settings_);
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(cache.store(key_of(name), std::vector<char>(1000)), "");
  EXPECT_EQ(files(), 3U);
  EXPECT_EQ(cache.store(key_of("d"), std::vector<char>(1000)), "");
  EXPECT_LE(files(), 2U);
}

TEST_F(DiskCacheTest, stores_nothing_larger_than_its_limit) {
  settings_.limit = 100;
  EXPECT_NE(cache().store(key_of("a"), std::vector<char>(1000)), "");
  EXPECT_EQ(cache().find(key_of("a")).reason(), "absent");
}

TEST_F(DiskCacheTest, removes_unfinished_files_of_the_dead_alone) {
  fs::create_directories(settings_.folder);
  const fs::path dead = settings_.folder / "0123456789abcdef.tmp-1-0-00000000";
  const fs::path alive = settings_.folder / "0123456789abcdef.tmp-2-0-00000000";
  write_to(dead, "half");
  write_to(alive, "half");
  fs::last_write_time(dead, fs::file_time_type::clock::now() - std::chrono::hours(2));
  EXPECT_EQ(cache().store(key_of("a"), chars("code")), "");
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(alive));
}

/// Stores and looks up `count` entries, whose texts begin with `prefix`; true when every lookup hits.
bool fill(const DiskCacheSettings& settings, const std::string& prefix, int count) {
  DiskCache cache(settings);
  for (int i = 0; i < count; ++i) {
    const CacheKey key = key_of(prefix + std::to_string(i));
    const std::vector<char> payload = chars(key.text + std::string(3000, 'p'));
    const CacheLookup before = cache.find(key);
    if (!before.hit() && before.answer != CacheAnswer::absent) return false;
    if (!cache.store(key, payload).empty() || cache.find(key).payload != payload) return false;
  }
  return true;
}

TEST_F(DiskCacheTest, processes_fill_it_at_once_with_equal_and_different_keys) {
  std::vector<pid_t> children;
  for (int process = 0; process < 4; ++process) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const bool good = fill(settings_, "same", 100) && fill(settings_, std::to_string(process) + "of", 50);
      ::_exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(files(), 100U + 4U * 50U) << "no unfinished file is left";
  EXPECT_TRUE(cache().find(key_of("same99")).hit());
  EXPECT_TRUE(cache().find(key_of("3of49")).hit());
}

TEST_F(DiskCacheTest, threads_share_one_instance) {
  DiskCache cache(settings_);
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&cache] {
        for (int i = 0; i < 50; ++i) {
          const CacheKey key = key_of(std::to_string(i));
          EXPECT_EQ(cache.store(key, chars(key.text)), "");
          EXPECT_EQ(cache.find(key).payload, chars(key.text));
        }
      });
    }
  }
  EXPECT_EQ(files(), 50U);
}

TEST_F(DiskCacheTest, does_nothing_when_it_is_off) {
  settings_.off = "SINTER_CACHE=off";
  EXPECT_EQ(cache().store(key_of("a"), chars("code")), "");
  EXPECT_EQ(cache().find(key_of("a")).reason(), "disabled: SINTER_CACHE=off");
  EXPECT_FALSE(fs::exists(settings_.folder));
}

/// Environment variables as given for as long as the object lives; null unsets one.
class Environment {
 public:
  explicit Environment(std::vector<std::pair<const char*, const char*>> values) {
    for (const auto& [name, value] : values) {
      const char* was = std::getenv(name);
      before_.emplace_back(name, was == nullptr ? std::optional<std::string>() : was);
      set(name, value);
    }
  }
  ~Environment() {
    for (const auto& [name, value] : before_) set(name, value ? value->c_str() : nullptr);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  static void set(const char* name, const char* value) {
    if (value == nullptr) {
      ::unsetenv(name);
    } else {
      ::setenv(name, value, 1);
    }
  }
  std::vector<std::pair<const char*, std::optional<std::string>>> before_;
};

DiskCacheSettings settings_with(const char* cache, const char* xdg, const char* home, const char* limit = nullptr) {
  const Environment environment(
      {{"SINTER_CACHE", cache}, {"XDG_CACHE_HOME", xdg}, {"HOME", home}, {"SINTER_CACHE_LIMIT", limit}});
  return DiskCacheSettings::from_environment();
}

TEST(DiskCacheSettings, take_the_folder_from_the_environment) {
  EXPECT_EQ(settings_with("/mine", "/xdg", "/home/me").folder, "/mine");
  EXPECT_EQ(settings_with(nullptr, "/xdg", "/home/me").folder, "/xdg/sinter");
  EXPECT_EQ(settings_with("", "", "/home/me").folder, "/home/me/.cache/sinter");
  EXPECT_EQ(settings_with(nullptr, "relative", "/home/me").folder, "/home/me/.cache/sinter");
  EXPECT_EQ(settings_with("here", nullptr, nullptr).folder, fs::current_path() / "here");
  EXPECT_EQ(settings_with("/mine", nullptr, nullptr).off, "");
  EXPECT_NE(settings_with(nullptr, nullptr, nullptr).off, "");
}

TEST(DiskCacheSettings, take_the_limit_from_the_environment) {
  EXPECT_EQ(settings_with("/mine", nullptr, nullptr).limit, uint64_t{1} << 30);
  EXPECT_EQ(settings_with("/mine", nullptr, nullptr, "3").limit, uint64_t{3} << 20);
  for (const char* wrong : {"x", "3x", "-3", " 3", "1e3", "99999999999999999999", "17592186044416"}) {
    EXPECT_NE(settings_with("/mine", nullptr, nullptr, wrong).off.find(wrong), std::string::npos) << wrong;
  }
  EXPECT_EQ(settings_with("/mine", nullptr, nullptr, "0").off, "SINTER_CACHE_LIMIT=0");
}

TEST(DiskCacheSettings, are_off_when_told_so) {
  EXPECT_EQ(settings_with("off", "/xdg", "/home/me").off, "SINTER_CACHE=off");
}

}  // namespace
}  // namespace sinter::runtime
