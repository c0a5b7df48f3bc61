#include "frontend/graph_generators.h"

#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/fill.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <mutex>

namespace sinter::frontend {
namespace {

using State = c10::intrusive_ptr<at::CUDAGeneratorState>;

/// What generators know a graph by, and the way to their state; nothing is ever recorded into it.
class Registration final : public at::cuda::CUDAGraph {
 public:
  /// Gives the generator's state, which has memory for seed and offset from here on.
  State add(at::CUDAGeneratorImpl& generator) {
    generator.register_graph(this);
    const auto found = std::find_if(
        captured_generator_states_.begin(), captured_generator_states_.end(),
        [&](const auto& row) { return std::find(known_.begin(), known_.end(), row.first.get()) == known_.end(); });
    if (found == captured_generator_states_.end()) return {};  // two generators that share one state
    known_.push_back(found->first.get());
    return found->first;
  }

 private:
  std::vector<const at::CUDAGeneratorState*> known_;
};

class GraphGenerators final : public runtime::Host::Draws {
 public:
  GraphGenerators(int device_index, const std::vector<at::Generator>& named) {
    // Seed and offset are set inside and outside of inference mode.
    const c10::InferenceMode normal_tensors(false);
    const auto index = static_cast<c10::DeviceIndex>(device_index);
    add(at::cuda::detail::getDefaultCUDAGenerator(index));
    for (const at::Generator& generator : named) {
      if (generator.device() == c10::Device(c10::kCUDA, index)) add(generator);
    }
  }

  void rewind() override {
    for (Drawn& drawn : drawn_) {
      const std::lock_guard lock(drawn.generator.mutex());
      drawn.state->philox_offset_per_thread_ = drawn.offset;
    }
  }

  void begin_recording() override {
    for (Drawn& drawn : drawn_) {
      const std::lock_guard lock(drawn.generator.mutex());
      drawn.state->offset_intragraph_ = 0;
      drawn.state->capturing_ = true;
    }
  }

  void end_recording() override {
    for (Drawn& drawn : drawn_) {
      const std::lock_guard lock(drawn.generator.mutex());
      drawn.state->capturing_ = false;
      drawn.per_replay = drawn.state->offset_intragraph_;
    }
  }

  void prepare_replay() override {
    const c10::InferenceMode normal_tensors(false);
    for (Drawn& drawn : drawn_) {
      if (drawn.per_replay == 0) continue;
      const std::lock_guard lock(drawn.generator.mutex());
      at::CUDAGeneratorState& state = *drawn.state;
      at::Tensor(state.seed_extragraph_).fill_(static_cast<int64_t>(state.seed_));
      at::Tensor(state.offset_extragraph_).fill_(static_cast<int64_t>(state.philox_offset_per_thread_));
      state.philox_offset_per_thread_ += drawn.per_replay;
    }
  }

 private:
  struct Drawn {
    at::Generator generator;
    State state;
    uint64_t offset = 0;      ///< where it stood when this object was made
    uint64_t per_replay = 0;  ///< what one replay draws
  };

  void add(at::Generator generator) {
    const std::lock_guard lock(generator.mutex());
    const State state = registration_.add(*generator.get<at::CUDAGeneratorImpl>());
    if (!state) return;
    drawn_.push_back({std::move(generator), state, state->philox_offset_per_thread_, 0});
  }

  Registration registration_;
  std::vector<Drawn> drawn_;
};

}  // namespace

std::unique_ptr<runtime::Host::Draws> make_graph_generators(int device_index, const std::vector<at::Generator>& named) {
  return std::make_unique<GraphGenerators>(device_index, named);
}

}  // namespace sinter::frontend
