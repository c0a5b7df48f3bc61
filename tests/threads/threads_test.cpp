#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <filesystem>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/disk_cache.h"
#include "runtime/kernel_cache.h"
#include "runtime/spare_pool.h"

/// Many threads on one object of each kind that calls share. What goes wrong shows under the thread sanitizer.
namespace sinter::runtime {
namespace {

constexpr int kThreads = 8;
constexpr int kRounds = 200;

/// Runs `work(thread)` on all threads, which start together.
void together(const std::function<void(int)>& work) {
  std::barrier start(kThreads);
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      start.arrive_and_wait();
      work(thread);
    });
  }
}

TEST(ConcurrentBuildCache, builds_each_of_many_keys_once) {
  BuildCache<std::string> cache;
  std::atomic<int> builds{0};
  together([&](int thread) {
    for (int round = 0; round < kRounds; ++round) {
      const auto key = std::to_string((round + thread) % 50);
      const auto cached = cache.get(key, [&] {
        ++builds;
        return std::make_shared<std::string>(key + key);
      });
      ASSERT_EQ(*cached.built, key + key);
    }
  });
  EXPECT_EQ(builds, 50);
}

TEST(ConcurrentBuildCache, tries_again_after_builds_that_throw) {
  BuildCache<int> cache;
  std::atomic<int> tries{0};
  std::atomic<int> refused{0};
  together([&](int) {
    for (int round = 0; round < kRounds; ++round) {
      try {
        const auto cached = cache.get("key", [&]() -> std::shared_ptr<int> {
          if (++tries < 20) throw std::runtime_error("refused");
          return std::make_shared<int>(5);
        });
        ASSERT_EQ(*cached.built, 5);
      } catch (const std::runtime_error&) {
        ++refused;
      }
    }
  });
  EXPECT_EQ(tries, 20);
  EXPECT_GE(refused, 19);
}

TEST(ConcurrentRunInParallel, nests) {
  std::vector<std::atomic<int>> done(64);
  run_in_parallel(8, [&](size_t outer) { run_in_parallel(8, [&](size_t inner) { ++done[outer * 8 + inner]; }); });
  for (const auto& count : done) EXPECT_EQ(count, 1);
}

TEST(ConcurrentSparePool, gives_every_object_to_one_thread_at_a_time) {
  struct Counter {
    int uses = 0;  // no atomic: only one thread at a time may have it
  };
  SparePool<Counter, 4> pool;
  std::atomic<int> made{0};
  std::atomic<int64_t> lost{0};
  together([&](int) {
    for (int round = 0; round < kRounds * 10; ++round) {
      auto counter = pool.take();
      if (counter == nullptr) {
        counter = std::make_unique<Counter>();
        ++made;
      }
      ++counter->uses;
      pool.give(std::move(counter));
    }
  });
  int64_t uses = 0;
  while (auto counter = pool.take()) {
    uses += counter->uses;
    ++lost;
  }
  EXPECT_GE(lost, 1);
  EXPECT_LE(lost, 4);
  EXPECT_GT(uses, 0);
  EXPECT_LE(uses, int64_t{kThreads} * kRounds * 10);
}

/// A folder of its own, removed at the end.
class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "sinter-threads-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder can be made");
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

CacheKey key_of(int number) { return {"test", "1", "any", "text " + std::to_string(number)}; }

std::string payload_of(int number) { return std::string(2000, static_cast<char>('a' + number % 26)); }

TEST(ConcurrentDiskCache, answers_with_whole_entries_or_none_while_others_store_the_same) {
  const Folder folder;
  DiskCache cache({.folder = folder.path(), .limit = 64 << 20, .off = {}});
  together([&](int thread) {
    for (int round = 0; round < kRounds / 4; ++round) {
      const int number = (round + thread) % 5;
      const auto payload = payload_of(number);
      EXPECT_EQ(cache.store(key_of(number), payload), "");
      const auto found = cache.find(key_of(number));
      ASSERT_TRUE(found.hit()) << found.detail;
      ASSERT_EQ(std::string(found.payload.begin(), found.payload.end()), payload);
    }
  });
}

TEST(ConcurrentDiskCache, evicts_while_others_read) {
  const Folder folder;
  DiskCache one({.folder = folder.path(), .limit = 20 << 10, .off = {}});
  DiskCache other({.folder = folder.path(), .limit = 20 << 10, .off = {}});
  std::atomic<int> hits{0};
  together([&](int thread) {
    DiskCache& cache = thread % 2 == 0 ? one : other;
    for (int round = 0; round < kRounds / 4; ++round) {
      const int number = thread * kRounds + round;
      EXPECT_EQ(cache.store(key_of(number), payload_of(number)), "");
      const auto found = cache.find(key_of(number - 1));
      if (!found.hit()) continue;
      ++hits;
      const auto expected = payload_of(number - 1);
      ASSERT_EQ(std::string(found.payload.begin(), found.payload.end()), expected);
    }
  });
  EXPECT_GT(hits, 0);
}

}  // namespace
}  // namespace sinter::runtime
