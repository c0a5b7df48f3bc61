#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "compiler/support/planted.h"
#include "frontend/cuda/generator_memory.h"
#include "frontend/torch/cuda.h"

namespace sinter::frontend::cuda {
namespace {

class GraphGenerators final : public runtime::Host::Draws {
 public:
  GraphGenerators(c10::DeviceIndex device, const std::vector<at::Generator>& named) {
    // Seed and offset are set inside and outside of inference mode.
    const c10::InferenceMode normal_tensors(false);
    const c10::Device here(c10::kCUDA, device);
    add(here, at::cuda::detail::getDefaultCUDAGenerator(device));
    for (const at::Generator& generator : named) {
      if (generator.device() == here) add(here, generator);
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
      drawn.memory->begin();
    }
  }

  void end_recording() override {
    for (Drawn& drawn : drawn_) {
      const std::lock_guard lock(drawn.generator.mutex());
      drawn.per_replay = drawn.memory->end();
    }
  }

  void prepare_replay() override {
    const c10::InferenceMode normal_tensors(false);
    for (Drawn& drawn : drawn_) {
      if (drawn.per_replay == 0) continue;
      const std::lock_guard lock(drawn.generator.mutex());
      if (planted(Bug::graph_draws_repeated)) drawn.state->philox_offset_per_thread_ = drawn.offset;
      drawn.memory->fill();
      drawn.state->philox_offset_per_thread_ += drawn.per_replay;
    }
  }

 private:
  struct Drawn {
    at::Generator generator;
    GeneratorState state;
    std::unique_ptr<GeneratorMemory<at::CUDAGeneratorState>> memory;
    uint64_t offset = 0;      ///< where it stood when this object was made
    uint64_t per_replay = 0;  ///< what one replay draws
  };

  void add(c10::Device device, at::Generator generator) {
    const std::lock_guard lock(generator.mutex());
    auto& impl = *generator.get<at::CUDAGeneratorImpl>();
    const GeneratorState state = state_of(impl);
    const bool shared = std::ranges::any_of(drawn_, [&](const Drawn& drawn) { return drawn.state == state; });
    if (shared) return;
    drawn_.push_back({generator, state, std::make_unique<GeneratorMemory<at::CUDAGeneratorState>>(device, impl),
                      state->philox_offset_per_thread_, 0});
  }

  std::vector<Drawn> drawn_;
};

}  // namespace

std::unique_ptr<runtime::Host::Draws> make_graph_generators(c10::DeviceIndex device,
                                                            const std::vector<at::Generator>& named) {
  return std::make_unique<GraphGenerators>(device, named);
}

}  // namespace sinter::frontend::cuda
