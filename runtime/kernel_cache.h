#pragma once

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/stopwatch.h"

namespace sinter::runtime {

/// Something built, and whether this request is the one that built it.
template <class Built>
struct Cached {
  std::shared_ptr<Built> built;
  double seconds = 0;   ///< spent building; 0 when shared
  bool shared = false;  ///< an equal request came first
};

/// Builds every key once, whichever thread asks first; others wait for its result. Of those that nobody else holds the
/// ones used longest ago are forgotten where there are more than `most`.
/// A build that throws is forgotten: those who waited get its exception, and the next request tries again.
template <class Built>
class BuildCache {
 public:
  explicit BuildCache(size_t most = 4096) : most_(most), full_(most) {}

  using Future = std::shared_future<std::shared_ptr<Built>>;

  /// A key that somebody asks for. The first to do so has the promise, and keeps it with what was built, or by `fail`.
  struct Request {
    std::string key;
    Future future;
    std::optional<std::promise<std::shared_ptr<Built>>> promise;

    [[nodiscard]] bool is_first() const { return promise.has_value(); }
  };

  /// Keys are compared in full.
  [[nodiscard]] Request request(const std::string& key) {
    Request asked{key, {}, std::nullopt};
    std::vector<Future> forgotten;  // freed without the lock
    std::lock_guard lock(mutex_);
    if (entries_.size() > full_) forgotten = forget();
    auto [entry, inserted] = entries_.try_emplace(key);
    if (inserted) entry->second.future = asked.promise.emplace().get_future().share();
    entry->second.last_use = ++uses_;
    asked.future = entry->second.future;
    return asked;
  }

  /// Forgets a key of which this is the first request, whose others get the exception.
  void fail(Request& asked, std::exception_ptr failure) {
    {
      std::lock_guard lock(mutex_);
      entries_.erase(asked.key);
    }
    asked.promise->set_exception(std::move(failure));
  }

  /// `build()` answers a std::shared_ptr<Built>.
  template <class Build>
  Cached<Built> get(const std::string& key, Build&& build) {
    Request asked = request(key);
    if (!asked.is_first()) return {asked.future.get(), 0, true};
    const Stopwatch stopwatch;
    try {
      std::shared_ptr<Built> built = build();
      asked.promise->set_value(built);
      return {built, stopwatch.seconds(), false};
    } catch (...) {
      fail(asked, std::current_exception());
      throw;
    }
  }

  /// What an earlier request has built, or is building; nothing when there was none.
  [[nodiscard]] std::optional<Cached<Built>> find(const std::string& key) {
    Future future;
    {
      std::lock_guard lock(mutex_);
      const auto entry = entries_.find(key);
      if (entry == entries_.end()) return std::nullopt;
      entry->second.last_use = ++uses_;
      future = entry->second.future;
    }
    return Cached<Built>{future.get(), 0, true};
  }

 private:
  struct Entry {
    Future future;
    uint64_t last_use = 0;
  };

  [[nodiscard]] static bool is_spare(const Future& future) {
    return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready && future.get().use_count() == 1;
  }

  /// Leaves three quarters of `most_`, or what is in use.
  [[nodiscard]] std::vector<Future> forget() {
    using Iterator = typename decltype(entries_)::iterator;
    std::vector<Iterator> spare;
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (is_spare(entry->second.future)) spare.push_back(entry);
    }
    std::ranges::sort(spare, {}, [](Iterator entry) { return entry->second.last_use; });
    spare.resize(std::min(spare.size(), entries_.size() - most_ * 3 / 4));
    std::vector<Future> forgotten;
    for (const Iterator entry : spare) {
      forgotten.push_back(std::move(entry->second.future));
      entries_.erase(entry);
    }
    full_ = std::max(most_, entries_.size() * 2);
    return forgotten;
  }

  const size_t most_;
  std::mutex mutex_;  ///< of what follows
  size_t full_;       ///< entries at which some are forgotten
  uint64_t uses_ = 0;
  std::unordered_map<std::string, Entry> entries_;
};

/// Runs work(0) ... work(count - 1) on as many threads as `most`, this one among them, and waits for all. Rethrows the
/// exception of the lowest index that threw.
void run_in_parallel(size_t count, size_t most, const std::function<void(size_t)>& work);
/// The same on as many threads as there are cores.
void run_in_parallel(size_t count, const std::function<void(size_t)>& work);

/// Fills `results[i]` with `find(i)`, and where that has nothing with `build(i)`: all builds in parallel. Whichever
/// thread did it then calls `told(i, begin)` with the time at which it began.
template <class Built, class Find, class Build, class Told>
void find_or_build_all(std::vector<Cached<Built>>& results, const Find& find, const Build& build, const Told& told) {
  using Clock = std::chrono::steady_clock;
  std::vector<size_t> absent;
  for (size_t i = 0; i < results.size(); ++i) {
    const auto begin = Clock::now();
    if (auto known = find(i)) {
      results[i] = std::move(*known);
      told(i, begin);
    } else {
      absent.push_back(i);
    }
  }
  run_in_parallel(absent.size(), [&](size_t position) {
    const size_t i = absent[position];
    const auto begin = Clock::now();
    results[i] = build(i);
    told(i, begin);
  });
}

}  // namespace sinter::runtime
