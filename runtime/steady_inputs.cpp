#include "runtime/steady_inputs.h"

#include "compiler/support/planted.h"

namespace sinter::runtime {

SteadyInputs::SteadyInputs(const std::vector<Input>& inputs, bool may_stay) {
  places_.reserve(inputs.size());
  for (const Input& input : inputs) places_.push_back({input});
  if (!may_stay || inputs.empty()) state_ = State::remembered;
}

SteadyInputs::Next SteadyInputs::next(const Frame& frame) {
  if (state_ == State::unknown) {
    remember(frame);
    return Next::launch;
  }
  const bool changed = moved(frame);
  if (state_ == State::recorded && !changed) return Next::replay;
  if (state_ == State::recorded) {
    state_ = State::remembered;
    return Next::launch;
  }
  if (recordings_ + 1 == most_recordings) copy_all();
  return Next::record;
}

std::vector<BufferId> SteadyInputs::those(bool steady) const {
  std::vector<BufferId> buffers;
  for (const Place& place : places_) {
    if (place.steady == steady) buffers.push_back(place.input.buffer);
  }
  return buffers;
}

void SteadyInputs::recorded() {
  state_ = State::recorded;
  ++recordings_;
}

void SteadyInputs::remember(const Frame& frame) {
  for (Place& place : places_) {
    place.address = frame.data(place.input.buffer);
    // A kernel would not take it there, and takes the graph's own copy.
    place.steady = (reinterpret_cast<uintptr_t>(place.address) & place.input.clear) == 0;
  }
  state_ = State::remembered;
}

bool SteadyInputs::moved(const Frame& frame) {
  bool moved = false;
  for (Place& place : places_) {
    if (!place.steady || planted(Bug::graph_address_ignored)) continue;
    if (frame.data(place.input.buffer) == place.address) continue;
    place.steady = false;
    moved = true;
  }
  return moved;
}

void SteadyInputs::copy_all() {
  for (Place& place : places_) place.steady = false;
}

}  // namespace sinter::runtime
