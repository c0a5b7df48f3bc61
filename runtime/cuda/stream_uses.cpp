#include "runtime/cuda/stream_uses.h"

namespace sinter::runtime {

StreamUses::~StreamUses() {
  for (const auto& [stream, event] : last_) driver_.event_destroy(event);
}

void StreamUses::note(CUstream stream) {
  const StreamId id = driver_.id_of(stream);
  const std::lock_guard lock(mutex_);
  auto known = last_.find(id);
  if (known == last_.end()) {
    forget_finished();  // streams may come and go
    CUevent event = nullptr;
    driver_.check(driver_.event_create(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    known = last_.emplace(id, event).first;
  }
  driver_.check(driver_.event_record(known->second, stream), "cuEventRecord");
}

void StreamUses::forget_finished() {
  std::erase_if(last_, [this](const auto& use) {
    return driver_.event_query(use.second) == CUDA_SUCCESS && driver_.event_destroy(use.second) == CUDA_SUCCESS;
  });
}

void StreamUses::finish() {
  const std::lock_guard lock(mutex_);
  for (const auto& [stream, event] : last_) driver_.event_synchronize(event);
}

}  // namespace sinter::runtime
