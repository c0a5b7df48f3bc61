#pragma once

#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/fill.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <mutex>

/// Seed and offset of a generator in the device's memory, which the kernels of a recorded graph read. LibTorch's
/// versions keep them in two ways, told apart by the members of CUDAGeneratorState; the interface is one:
///
///     GeneratorMemory(device, generator)   takes the memory; no stream is being recorded
///     begin(), end()                       around a recording, on the stream that is recorded; end() gives how far
///                                          the recorded kernels draw
///     fill()                               writes seed and offset there, on the current stream
///
/// The caller holds the generator's mutex, and is outside of inference mode in the constructor and in fill().
namespace sinter::frontend::cuda {

using GeneratorState = c10::intrusive_ptr<at::CUDAGeneratorState>;

/// The state that a generator draws from, which is private to it. An explicit instantiation may name private members.
template <auto member>
struct StateOf {
  friend GeneratorState& state_of(at::CUDAGeneratorImpl& generator) { return generator.*member; }
};
template struct StateOf<&at::CUDAGeneratorImpl::state_>;
GeneratorState& state_of(at::CUDAGeneratorImpl& generator);

/// Up to LibTorch 2.12: a generator has one memory for all graphs, which it knows by their CUDAGraph, and is recorded
/// by one at a time.
template <class State>
concept OneRecording = requires(State& state) { state.capturing_; };

/// From LibTorch 2.13 on: a memory for every recording, found by the number that CUDA gives to it.
template <class State, class Generator = at::CUDAGeneratorImpl>
class GeneratorMemory {
 public:
  GeneratorMemory(c10::Device device, Generator& generator) : state_(state_of(generator)), own_(Own::make()) {
    const auto options = at::TensorOptions().device(device).dtype(at::kLong);
    own_->rng_state_seed_extragraph_ = at::empty({1}, options);
    own_->rng_state_offset_extragraph_ = at::empty({1}, options);
  }

  void begin() {
    own_->offset_intragraph_ = 0;
    cudaStreamCaptureStatus status{};
    C10_CUDA_CHECK(cudaStreamGetCaptureInfo(c10::cuda::getCurrentCUDAStream(), &status, &recording_));
    const std::lock_guard lock(state_->capture_states_mutex_);
    state_->capture_states_[recording_] = own_;
  }

  [[nodiscard]] uint64_t end() {
    const std::lock_guard lock(state_->capture_states_mutex_);
    state_->capture_states_.erase(recording_);
    return own_->offset_intragraph_;
  }

  void fill() {
    at::Tensor(own_->rng_state_seed_extragraph_).fill_(static_cast<int64_t>(state_->seed_));
    at::Tensor(own_->rng_state_offset_extragraph_).fill_(static_cast<int64_t>(state_->philox_offset_per_thread_));
  }

 private:
  using Own = typename decltype(State::capture_states_)::mapped_type;

  c10::intrusive_ptr<State> state_;
  Own own_;
  unsigned long long recording_ = 0;
};

template <OneRecording State, class Generator>
class GeneratorMemory<State, Generator> {
 public:
  GeneratorMemory(c10::Device /*device*/, Generator& generator) : state_(state_of(generator)) {
    generator.register_graph(&known_as_);
  }

  void begin() {
    state_->offset_intragraph_ = 0;
    state_->capturing_ = true;
  }

  [[nodiscard]] uint64_t end() {
    state_->capturing_ = false;
    return state_->offset_intragraph_;
  }

  void fill() {
    at::Tensor(state_->seed_extragraph_).fill_(static_cast<int64_t>(state_->seed_));
    at::Tensor(state_->offset_extragraph_).fill_(static_cast<int64_t>(state_->philox_offset_per_thread_));
  }

 private:
  c10::intrusive_ptr<State> state_;
  at::cuda::CUDAGraph known_as_;  ///< nothing is ever recorded into it
};

}  // namespace sinter::frontend::cuda
