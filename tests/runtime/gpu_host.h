#pragma once

#include <cuda.h>

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "runtime/cuda/driver.h"
#include "tests/runtime/fake_host.h"

/// The fake host over device memory: streams, a caching allocator with private pools, copies.
namespace sinter::runtime::fake {

/// Told of memory that nobody holds any more.
using Freed = void (*)(void* memory, size_t bytes);

/// Blocks cut from one allocation, kept by size and handed out again, last freed first, within the pool (0 is
/// everybody's) and to the stream they were made for.
class DeviceMemory final : public Memory {
 public:
  explicit DeviceMemory(const Driver& driver, Freed freed = nullptr);
  ~DeviceMemory() override;
  [[nodiscard]] std::shared_ptr<void> allocate(int64_t bytes) override;
  /// What was allocated in a pool is free for everybody: `freed` is told once more.
  void release(uint64_t pool);

 private:
  const Driver& driver_;
  Freed freed_;
  std::mutex mutex_;
  CUdeviceptr start_ = 0;
  size_t used_ = 0;
  std::map<std::tuple<uint64_t, CUstream, size_t>, std::vector<CUdeviceptr>> free_;  ///< by pool, stream and size
  std::map<size_t, std::vector<CUdeviceptr>> returned_;                              ///< of pools that are no more
};

class GpuHost final : public Host {
 public:
  explicit GpuHost(const Driver& driver, Freed freed = nullptr);
  ~GpuHost() override;

  std::multiset<uint64_t> open_pools;  ///< once for each recording that is not released

  [[nodiscard]] void* current_stream(ir::Device device) override;
  [[nodiscard]] std::unique_ptr<Recording> record(ir::Device device,
                                                  const std::optional<PoolRequest>& request) override;
  void release_pool(ir::Device device, uint64_t pool) override;

  [[nodiscard]] CUstream make_stream();
  /// Makes `stream` this thread's current one.
  static void use(CUstream stream);
  void upload(void* to, const std::vector<float>& values);
  [[nodiscard]] std::vector<float> download(const void* from, int64_t count);
  /// result = argument, on the current stream.
  void copy(Frame& frame, const ExternCall& call);

 private:
  GpuHost(const Driver& driver, const std::shared_ptr<DeviceMemory>& memory);

  const Driver& driver_;
  std::shared_ptr<DeviceMemory> memory_;
  std::mutex pools_mutex_;
  std::vector<CUstream> streams_;
  CUstream side_ = nullptr;
  uint64_t next_pool_ = 1;
};

}  // namespace sinter::runtime::fake
