#include "frontend/trace/expectation.h"

namespace sinter::frontend {

std::shared_ptr<CompiledPath> Expectation::path() const {
  const bool pays =
      right_.load(std::memory_order_relaxed) >= right_for_each_wrong * wrong_.load(std::memory_order_relaxed);
  return pays ? path_.load().lock() : nullptr;
}

void Expectation::note(const std::shared_ptr<CompiledPath>& path) {
  const bool as_expected = path != nullptr && path_.load().lock() == path;
  if (as_expected) {
    right_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (!path_.load().expired()) wrong_.fetch_add(1, std::memory_order_relaxed);
  if (path != nullptr) path_.store(path);
}

}  // namespace sinter::frontend
