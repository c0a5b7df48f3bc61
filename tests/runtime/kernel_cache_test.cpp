#include "runtime/kernel_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>

namespace sinter::runtime {
namespace {

TEST(BuildCache, builds_an_equal_key_once_however_many_threads_ask) {
  BuildCache<int> cache;
  std::atomic<int> builds{0};
  std::atomic<int> shared{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        const auto cached = cache.get("key", [&] {
          ++builds;
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          return std::make_shared<int>(7);
        });
        EXPECT_EQ(*cached.built, 7);
        shared += cached.shared ? 1 : 0;
      });
    }
  }
  EXPECT_EQ(builds, 1);
  EXPECT_EQ(shared, 7);
}

TEST(BuildCache, tells_different_keys_apart) {
  BuildCache<int> cache;
  EXPECT_EQ(*cache.get("a", [] { return std::make_shared<int>(1); }).built, 1);
  EXPECT_EQ(*cache.get("b", [] { return std::make_shared<int>(2); }).built, 2);
}

TEST(BuildCache, forgets_what_was_used_longest_ago_and_nobody_holds) {
  BuildCache<int> cache(8);
  const auto number = [](int value) { return [value] { return std::make_shared<int>(value); }; };
  const auto held = cache.get("held", number(-1));
  for (int i = 0; i < 100; ++i) {
    (void)cache.get(std::to_string(i), number(i));
    EXPECT_TRUE(cache.find("0"));  // used again and again
  }
  EXPECT_EQ(cache.find("held")->built, held.built);
  EXPECT_FALSE(cache.find("1"));
  EXPECT_FALSE(cache.find("80"));
  EXPECT_EQ(*cache.find("99")->built, 99);
  EXPECT_FALSE(cache.get("1", number(7)).shared);
}

TEST(BuildCache, keeps_what_is_held) {
  BuildCache<int> cache(4);
  std::vector<std::shared_ptr<int>> held;
  for (int i = 0; i < 64; ++i)
    held.push_back(cache.get(std::to_string(i), [] { return std::make_shared<int>(); }).built);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(cache.find(std::to_string(i))->built, held[static_cast<size_t>(i)]);
}

TEST(BuildCache, forgets_a_build_that_throws) {
  BuildCache<int> cache;
  const auto refuse = []() -> std::shared_ptr<int> { throw std::runtime_error("refused"); };
  EXPECT_THROW((void)cache.get("key", refuse), std::runtime_error);
  const auto cached = cache.get("key", [] { return std::make_shared<int>(3); });
  EXPECT_EQ(*cached.built, 3);
  EXPECT_FALSE(cached.shared);
}

TEST(RunInParallel, does_every_piece_once) {
  std::vector<std::atomic<int>> done(100);
  run_in_parallel(done.size(), [&](size_t i) { ++done[i]; });
  for (const auto& count : done) EXPECT_EQ(count, 1);
}

TEST(RunInParallel, finishes_all_and_rethrows_the_failure_of_the_lowest_index) {
  std::atomic<int> done{0};
  const auto work = [&](size_t i) {
    ++done;
    if (i == 3 || i == 7) throw std::runtime_error(std::to_string(i));
  };
  try {
    run_in_parallel(10, work);
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "3");
  }
  EXPECT_EQ(done, 10);
}

TEST(RunInParallel, does_nothing_for_no_work) {
  run_in_parallel(0, [](size_t) { FAIL(); });
}

}  // namespace
}  // namespace sinter::runtime
