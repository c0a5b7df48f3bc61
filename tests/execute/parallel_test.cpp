#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "frontend/execute/host_torch.h"

/// Loops of CPU kernels on LibTorch's threads.
namespace sinter::frontend {
namespace {

/// As many threads as a test needs, for as long as it runs.
class Threads {
 public:
  explicit Threads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

TorchHost host() { return TorchHost(std::make_shared<const Plan>(), {}); }

/// What each unit of a loop was run by; every one once.
struct Seen {
  std::vector<std::atomic<int>> times;
  std::mutex mutex;
  std::set<std::thread::id> threads;

  explicit Seen(int64_t count) : times(static_cast<size_t>(count)) {}
  void operator()(int64_t begin, int64_t end) {
    const std::scoped_lock lock(mutex);
    threads.insert(std::this_thread::get_id());
    for (int64_t i = begin; i < end; ++i) ++times.at(static_cast<size_t>(i));
  }
  [[nodiscard]] bool all_once() const {
    return std::ranges::all_of(times, [](const std::atomic<int>& count) { return count == 1; });
  }
};

TEST(ParallelLoops, run_on_as_many_threads_as_libtorch_has) {
  const Threads two(2);
  for (const int64_t count : {2, 7, 1000}) {
    Seen seen(count);
    host().parallel_for(count, 1, std::ref(seen));
    EXPECT_TRUE(seen.all_once()) << count;
    EXPECT_EQ(seen.threads.size(), 2) << count;
  }
}

TEST(ParallelLoops, stay_on_this_thread_where_nothing_is_gained) {
  const auto run = [](int64_t count, int64_t grain) {
    Seen seen(count);
    host().parallel_for(count, grain, std::ref(seen));
    EXPECT_TRUE(seen.all_once());
    EXPECT_EQ(seen.threads, std::set{std::this_thread::get_id()});
  };
  {
    const Threads two(2);
    run(100, 100);
  }
  const Threads one(1);
  run(100, 1);
}

/// Two ranges of a program that is parallel itself.
TEST(ParallelLoops, stay_on_the_thread_of_a_range) {
  const Threads two(2);
  host().parallel_for(2, 1, [](int64_t, int64_t) {
    Seen seen(50);
    host().parallel_for(50, 1, std::ref(seen));
    EXPECT_TRUE(seen.all_once());
    EXPECT_EQ(seen.threads, std::set{std::this_thread::get_id()});
  });
}

}  // namespace
}  // namespace sinter::frontend
