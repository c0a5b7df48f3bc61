#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "compiler/ir/type.h"
#include "runtime/host.h"

namespace sinter::runtime {

/// What has a graph in a pool.
class GraphHolder {
 public:
  /// Drops the graph if it lies in memory that is not the pool's current one, and nobody is using it.
  virtual void drop_old_graph() = 0;

 protected:
  ~GraphHolder() = default;
};

/// Memory on one device that several recorded graphs work in, one after another: as much as the largest needs, not as
/// all together. Where a graph needs more than there is, memory begins anew; the graphs in the old one are dropped, and
/// recorded again when they are called. Thread-safe, but for what replays ask.
class GraphPool {
 public:
  explicit GraphPool(ir::Device device) : device_(device) {}

  void add(GraphHolder& holder);
  void remove(GraphHolder& holder);
  /// Before `record`: where there is less memory than that, what there is becomes old, and all holders but this one are
  /// asked to drop their graphs. Holders may lock what the caller holds, if they only try.
  void make_room(int64_t bytes, const GraphHolder& but);

  /// Begins the recording of a graph that will hold so many bytes at one time. Waits for other recordings. What is
  /// returned is followed by one `release` of its pool, whether or not the graph comes about.
  [[nodiscard]] std::unique_ptr<Host::Recording> record(Host& host, int64_t bytes);
  void release(Host& host, uint64_t pool);
  /// False for old memory.
  [[nodiscard]] bool is_current(uint64_t pool) const { return current_.load(std::memory_order_relaxed) == pool; }

  /// Notes that a graph runs. False where what it left in the memory is gone: another one has run since. One thread at
  /// a time asks, and forgets; replays hold the mutex of their device's turns.
  [[nodiscard]] bool is_still_of(const void* graph) { return std::exchange(last_, graph) == graph; }
  /// A graph is no more; the next one may get its address.
  void forget(const void* graph) { last_ = last_ == graph ? nullptr : last_; }

 private:
  static constexpr uint64_t none = 0;

  const ir::Device device_;
  std::mutex holders_mutex_;
  std::set<GraphHolder*> holders_;
  std::mutex mutex_;                      ///< of what follows; never asked for by who has begun to record
  std::atomic<uint64_t> current_ = none;  ///< the host's name for it
  int64_t bytes_ = 0;                     ///< of the block that the current one began with
  std::map<uint64_t, uint32_t> graphs_;   ///< recorded into each and not released
  const void* last_ = nullptr;
};

/// The pools of a function's graphs, by device. Thread-safe.
class GraphPools {
 public:
  [[nodiscard]] std::shared_ptr<GraphPool> on(ir::Device device);

 private:
  std::mutex mutex_;
  std::map<int, std::shared_ptr<GraphPool>> pools_;
};

}  // namespace sinter::runtime
