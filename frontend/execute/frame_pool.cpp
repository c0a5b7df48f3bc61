#include "frontend/execute/frame_pool.h"

namespace sinter::frontend {

std::unique_ptr<TorchFrame> FramePool::take(const TorchHost& host) {
  auto frame = spare_.take();
  return frame != nullptr ? std::move(frame) : host.make_torch_frame();
}

void FramePool::give(std::unique_ptr<TorchFrame> frame) {
  frame->clear();
  spare_.give(std::move(frame));
}

}  // namespace sinter::frontend
