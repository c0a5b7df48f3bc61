#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/host.h"

namespace sinter::runtime {

/// Tells the inputs that a recorded graph takes where they lie from those it copies: an input is steady until it comes
/// at a second address. A graph that takes one in place serves the calls that have it there. Used by one thread at a
/// time.
class SteadyInputs {
 public:
  /// An input that is copied unless it is steady, and the bits of its address that kernels need to be 0.
  struct Input {
    BufferId buffer;
    uint64_t clear = 0;
  };
  /// What a call does.
  enum class Next : uint8_t {
    launch,  ///< goes without the graph: too little is known of the addresses, or one has just changed
    record,  ///< records a graph for `steady()`
    replay,  ///< has every steady input where the graph takes it
  };
  /// With the last of these recordings every input is copied: inputs that move now and then cannot record for ever.
  static constexpr int most_recordings = 8;

  /// Where no input `may_stay`, all of them are copied and the first call records.
  SteadyInputs(const std::vector<Input>& inputs, bool may_stay);

  /// Looks at the addresses of a call, in which every input is bound.
  [[nodiscard]] Next next(const Frame& frame);
  /// True where a recorded graph finds those of its inputs that `is_there` says are bound where it takes them.
  template <class IsThere>
  [[nodiscard]] bool stay(const Frame& frame, IsThere&& is_there) const {
    return state_ == State::recorded && std::ranges::all_of(places_, [&](const Place& place) {
             return !place.steady || !is_there(place.input.buffer) || frame.data(place.input.buffer) == place.address;
           });
  }
  /// As of the last `next`, in the order given: the inputs that a graph takes in place, and the others.
  [[nodiscard]] std::vector<BufferId> steady() const { return those(true); }
  [[nodiscard]] std::vector<BufferId> copied() const { return those(false); }
  /// The graph for `steady()` is there: calls may replay it.
  void recorded();
  /// True from the recording on with which every input is copied because of their number.
  [[nodiscard]] bool gave_up() const { return recordings_ == most_recordings; }

 private:
  struct Place {
    Input input;
    const void* address = nullptr;
    bool steady = false;
  };

  [[nodiscard]] std::vector<BufferId> those(bool steady) const;
  void remember(const Frame& frame);
  /// True when a steady input lies elsewhere. It is steady no more.
  [[nodiscard]] bool moved(const Frame& frame);
  void copy_all();

  enum class State : uint8_t { unknown, remembered, recorded };
  std::vector<Place> places_;
  State state_ = State::unknown;
  int recordings_ = 0;
};

}  // namespace sinter::runtime
