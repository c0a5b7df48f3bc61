#pragma once

#include <memory>

#include "frontend/execute/host_torch.h"
#include "runtime/spare_pool.h"

namespace sinter::frontend {

/// Frames between calls, so that no call allocates one. Thread-safe, lock-free; holds no tensors.
class FramePool {
 public:
  [[nodiscard]] std::unique_ptr<TorchFrame> take(const TorchHost& host);
  /// Clears the frame and keeps it for a later call.
  void give(std::unique_ptr<TorchFrame> frame);

 private:
  runtime::SparePool<TorchFrame, 8> spare_;
};

/// A frame taken from a pool for the length of one call.
class FrameLease {
 public:
  FrameLease(FramePool& pool, const TorchHost& host) : pool_(pool), frame_(pool.take(host)) {}
  FrameLease(const FrameLease&) = delete;
  FrameLease& operator=(const FrameLease&) = delete;
  ~FrameLease() { pool_.give(std::move(frame_)); }

  TorchFrame& operator*() const { return *frame_; }
  TorchFrame* operator->() const { return frame_.get(); }

 private:
  FramePool& pool_;
  std::unique_ptr<TorchFrame> frame_;
};

}  // namespace sinter::frontend
