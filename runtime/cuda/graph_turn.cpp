#include "runtime/cuda/graph_turn.h"

#include <map>
#include <memory>
#include <utility>

namespace sinter::runtime {

GraphTurn& GraphTurn::of(const Driver& driver, int device) {
  static auto& mutex = *new std::mutex();
  static auto& turns = *new std::map<std::pair<const Driver*, int>, std::unique_ptr<GraphTurn>>();
  std::lock_guard lock(mutex);
  auto& turn = turns[{&driver, device}];
  if (turn == nullptr) turn.reset(new GraphTurn(driver));
  return *turn;
}

GraphTurn::GraphTurn(const Driver& driver) : driver_(driver) {
  driver_.check(driver_.event_create(&last_use_, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
}

void GraphTurn::enter(CUstream stream) {
  if (!last_stream_ || *last_stream_ == driver_.id_of(stream)) return;
  driver_.check(driver_.stream_wait(stream, last_use_, CU_EVENT_WAIT_DEFAULT), "cuStreamWaitEvent");
}

void GraphTurn::leave(CUstream stream) {
  driver_.check(driver_.event_record(last_use_, stream), "cuEventRecord");
  last_stream_ = driver_.id_of(stream);
}

bool GraphTurn::is_over() {
  const std::lock_guard lock(mutex_);
  return !last_stream_ || driver_.event_query(last_use_) == CUDA_SUCCESS;
}

void GraphTurn::finish() {
  std::lock_guard lock(mutex_);
  if (last_stream_) driver_.event_synchronize(last_use_);
}

}  // namespace sinter::runtime
