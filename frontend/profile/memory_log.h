#pragma once

#include <c10/core/Allocator.h>

#include <mutex>
#include <span>
#include <vector>

#include "frontend/profile/module_table.h"
#include "sinter/profile.h"

namespace sinter::frontend {

/// A block that an allocator of LibTorch gave out or took back.
struct MemoryEvent {
  const void* address = nullptr;
  int64_t bytes = 0;      ///< below zero: taken back
  int64_t position = -1;  ///< of the operator in the log that asked; -1: none
  int64_t allocated = 0;  ///< that the allocator has given out afterwards, whoever asked; of the CPU not known
  int64_t reserved = 0;   ///< that it keeps of the device's memory, given out or not; 0: not known
};

/// A block that is there: what it is for, and whose.
struct KnownBlock {
  const void* address = nullptr;
  int64_t bytes = 0;
  const char* kind = "other";
  ModuleIndex module = no_module;
  int64_t position = -1;  ///< of the operator that asked for it; -1: none
};

/// Told by LibTorch's allocators, of the CPU and of GPUs, while a c10::DebugInfoGuard with it lives, in the threads
/// that LibTorch carries its state to. Thread-safe.
class MemoryLog final : public c10::MemoryReportingInfoBase {
 public:
  /// What is told of devices that are not of this type is left out.
  explicit MemoryLog(at::DeviceType device) : device_(device) {}

  void reportMemoryUsage(void* address, int64_t bytes, size_t allocated, size_t reserved, c10::Device device) override;
  [[nodiscard]] bool memoryProfilingEnabled() const override { return true; }

  /// The events since the last time.
  [[nodiscard]] std::vector<MemoryEvent> take();

 private:
  at::DeviceType device_;
  std::mutex mutex_;
  std::vector<MemoryEvent> events_;
};

/// Parameters, buffers, gradients and states of optimizers on devices of a type, as they are now.
[[nodiscard]] std::vector<KnownBlock> known_blocks(const ModuleTable& modules, at::DeviceType device);

/// The peak of a step and its owners. What the allocator had given out besides `before` is theirs that nobody knows:
/// inputs, graphs, workspaces of libraries. `before` was there when the step began, `after` when it ended; positions of
/// the events are of the profile's operators, whose times are known.
[[nodiscard]] ProfiledMemory memory_of_step(std::span<const MemoryEvent> events, std::span<const KnownBlock> before,
                                            std::span<const KnownBlock> after, const ModeProfile& profile);

}  // namespace sinter::frontend
