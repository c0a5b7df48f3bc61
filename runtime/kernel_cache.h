#pragma once

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
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

/// Builds every key once, for as long as the cache lives, whichever thread asks first; others wait for its result.
/// A build that throws is forgotten: those who waited get its exception, and the next request tries again.
template <class Built>
class BuildCache {
 public:
  /// `build()` answers a std::shared_ptr<Built>. Keys are compared in full.
  template <class Build>
  Cached<Built> get(const std::string& key, Build&& build) {
    std::promise<std::shared_ptr<Built>> promise;
    std::shared_future<std::shared_ptr<Built>> future;
    bool first = false;
    {
      std::lock_guard lock(mutex_);
      auto [entry, inserted] = entries_.try_emplace(key);
      if (inserted) entry->second = promise.get_future().share();
      future = entry->second;
      first = inserted;
    }
    if (!first) return {future.get(), 0, true};
    return make(key, promise, build);
  }

  /// What an earlier request has built, or is building; nothing when there was none.
  [[nodiscard]] std::optional<Cached<Built>> find(const std::string& key) {
    std::shared_future<std::shared_ptr<Built>> future;
    {
      std::lock_guard lock(mutex_);
      const auto entry = entries_.find(key);
      if (entry == entries_.end()) return std::nullopt;
      future = entry->second;
    }
    return Cached<Built>{future.get(), 0, true};
  }

 private:
  template <class Build>
  Cached<Built> make(const std::string& key, std::promise<std::shared_ptr<Built>>& promise, Build& build) {
    const Stopwatch stopwatch;
    try {
      std::shared_ptr<Built> built = build();
      promise.set_value(built);
      return {built, stopwatch.seconds(), false};
    } catch (...) {
      {
        std::lock_guard lock(mutex_);
        entries_.erase(key);
      }
      promise.set_exception(std::current_exception());
      throw;
    }
  }

  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_future<std::shared_ptr<Built>>> entries_;
};

/// Runs work(0) ... work(count - 1) on as many threads as there are cores, this one among them, and waits for all.
/// Rethrows the exception of the lowest index that threw.
void run_in_parallel(size_t count, const std::function<void(size_t)>& work);

/// Fills `results[i]` with `find(i)`, and where that has nothing with `build(i)`: all builds in parallel.
template <class Built, class Find, class Build>
void find_or_build_all(std::vector<Cached<Built>>& results, const Find& find, const Build& build) {
  std::vector<size_t> absent;
  for (size_t i = 0; i < results.size(); ++i) {
    if (auto known = find(i)) {
      results[i] = std::move(*known);
    } else {
      absent.push_back(i);
    }
  }
  run_in_parallel(absent.size(), [&](size_t i) { results[absent[i]] = build(absent[i]); });
}

}  // namespace sinter::runtime
