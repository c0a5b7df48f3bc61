#include "runtime/kernel_cache.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace sinter::runtime {

void run_in_parallel(size_t count, const std::function<void(size_t)>& work) {
  run_in_parallel(count, std::max<size_t>(1, std::thread::hardware_concurrency()), work);
}

void run_in_parallel(size_t count, size_t most, const std::function<void(size_t)>& work) {
  std::vector<std::exception_ptr> failures(count);
  std::atomic<size_t> next{0};
  const auto drain = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    const size_t helpers = std::min(count, most);
    threads.reserve(helpers);
    for (size_t i = 1; i < helpers; ++i) {
      try {
        threads.emplace_back(drain);
      } catch (const std::system_error&) {
        break;  // No more threads to be had: those that started do the work.
      }
    }
    drain();
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace sinter::runtime
