#include "frontend/left_behind.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "frontend/convert.h"
#include "frontend/cuda.h"
#include "frontend/generator_states.h"

namespace sinter::frontend {
namespace {

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

std::vector<at::Generator> default_generators() {
  std::vector<at::Generator> generators{at::globalContext().defaultGenerator(at::kCPU)};
  for (const c10::DeviceIndex device : cuda::devices_in_use()) {
    generators.push_back(at::globalContext().defaultGenerator({at::kCUDA, device}));
  }
  return generators;
}

GraphBreak left(const std::string& what) {
  return {
      BreakCode::unsupported_op, {}, {}, "leaves " + what, "change it outside the compiled callable, or put it back"};
}

}  // namespace

WatchedGenerators::WatchedGenerators(std::span<const at::Generator> generators) {
  for (const at::Generator& generator : generators) generators_.push_back(look_at(generator));
}

WatchedGenerators::Watched WatchedGenerators::look_at(at::Generator generator) {
  const std::lock_guard lock(generator.mutex());
  const uint64_t seed = generator.current_seed();
  return {generator, seed, generator.get_state()};
}

/// One that was given the seed it had stands, after the same draws, where the call before had left it.
std::optional<GraphBreak> WatchedGenerators::seeded_by(const Trace& trace) const {
  if (generators_.empty()) return std::nullopt;
  const std::vector<at::Generator> drawn = generators_of(trace);
  const bool seeded = std::any_of(generators_.begin(), generators_.end(), [&drawn](const Watched& before) {
    const Watched now = look_at(before.generator);
    const bool draws = std::find(drawn.begin(), drawn.end(), before.generator) != drawn.end();
    return now.seed != before.seed || (draws && same_bytes(now.state, before.state));
  });
  if (!seeded) return std::nullopt;
  return GraphBreak{BreakCode::unsupported_op,
                    "at::manual_seed",
                    {},
                    "seeds a generator that LibTorch draws from",
                    "seed it outside the compiled callable"};
}

CudaPlace CudaPlace::current() {
  CudaPlace place;
  if (const auto device = current_cuda_device()) place.device = device->index();
  for (const c10::DeviceIndex device : cuda::devices_in_use()) {
    place.streams.emplace_back(device, cuda::current_stream_id(device));
  }
  return place;
}

Surroundings::Surroundings()
    : modes_(Modes::current()), place_(CudaPlace::current()), generators_(default_generators()) {}

std::optional<GraphBreak> Surroundings::changed_by(const Trace& trace) const {
  if (const auto modes = modes_.differences(Modes::current()); !modes.empty()) {
    return left("a mode changed: " + modes[0].guard + " was " + modes[0].was + ", is " + modes[0].is);
  }
  const CudaPlace now = CudaPlace::current();
  if (now.device != place_.device) {
    return left(fmt::format("another CUDA device current: it was {}, is {}", place_.device, now.device));
  }
  for (const auto& stream : place_.streams) {
    if (std::ranges::find(now.streams, stream) != now.streams.end()) continue;
    return left(fmt::format("another stream current on CUDA device {}", stream.first));
  }
  return generators_.seeded_by(trace);
}

}  // namespace sinter::frontend
