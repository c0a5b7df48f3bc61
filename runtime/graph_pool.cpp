#include "runtime/graph_pool.h"

#include <algorithm>
#include <optional>

namespace sinter::runtime {
namespace {

/// Less is not worth recording anew for: LibTorch's allocator takes as much for a single tensor of 1 MiB.
constexpr int64_t least_bytes = int64_t{20} << 20;

}  // namespace

void GraphPool::add(GraphHolder& holder) {
  const std::lock_guard lock(holders_mutex_);
  holders_.insert(&holder);
}

void GraphPool::remove(GraphHolder& holder) {
  const std::lock_guard lock(holders_mutex_);
  holders_.erase(&holder);
}

void GraphPool::make_room(int64_t bytes, const GraphHolder& but) {
  {
    const std::lock_guard lock(mutex_);
    if (current_ == none || bytes <= bytes_) return;
    current_ = none;
  }
  const std::lock_guard lock(holders_mutex_);
  for (GraphHolder* holder : holders_) {
    if (holder != &but) holder->drop_old_graph();
  }
}

std::unique_ptr<Host::Recording> GraphPool::record(Host& host, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const bool fits = current_ != none && bytes <= bytes_;
  Host::PoolRequest request{.bytes = bytes};
  if (fits) request.id = current_;
  auto recording = host.record(device_, request);
  if (!fits) bytes_ = std::max(bytes, least_bytes);
  current_ = recording->pool();
  ++graphs_[current_];
  return recording;
}

void GraphPool::release(Host& host, uint64_t pool) {
  const std::lock_guard lock(mutex_);
  host.release_pool(device_, pool);
  const auto graphs = graphs_.find(pool);
  if (--graphs->second > 0) return;
  graphs_.erase(graphs);
  if (current_ == pool) current_ = none;
}

std::shared_ptr<GraphPool> GraphPools::on(ir::Device device) {
  const std::lock_guard lock(mutex_);
  auto& pool = pools_[device.index];
  if (pool == nullptr) pool = std::make_shared<GraphPool>(device);
  return pool;
}

}  // namespace sinter::runtime
