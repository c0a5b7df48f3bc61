#include "frontend/left_behind.h"

#include <ATen/Context.h>
#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "frontend/convert.h"

namespace sinter::frontend {
namespace {

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

/// True when the program drew from the default generator of a device.
bool draws_on(const ir::Graph& graph, const ir::Device& device) {
  return std::any_of(graph.order().begin(), graph.order().end(), [&](ir::NodeId id) {
    const ir::Node& node = graph.node(id);
    const auto* call = node.as<ir::Call>();
    const auto lies_there = [&](ir::ValueId value) {
      const ir::Type& type = graph.type(value);
      return type.device == device && type.numel() > 0;
    };
    if (call == nullptr || !call->random) return false;
    const bool own_generator = std::any_of(node.args.begin(), node.args.end(), [](const ir::Arg& arg) {
      return std::holds_alternative<ir::Opaque>(arg.data);
    });
    return !own_generator && std::any_of(node.results.begin(), node.results.end(), lies_there);
  });
}

bool draws_from(const Trace& trace, const at::Generator& generator) {
  const bool handed_on = std::any_of(trace.opaques.begin(), trace.opaques.end(), [&generator](const auto& opaque) {
    return opaque.isGenerator() && opaque.toGenerator() == generator;
  });
  const bool is_default = generator == at::globalContext().defaultGenerator(generator.device());
  return handed_on || (is_default && draws_on(trace.graph, device_of(generator.device())));
}

std::vector<at::Generator> default_generators() {
  std::vector<at::Generator> generators{at::globalContext().defaultGenerator(at::kCPU)};
  for (c10::DeviceIndex device = 0; device < c10::cuda::device_count(); ++device) {
    if (!c10::cuda::hasPrimaryContext(device)) continue;
    generators.push_back(at::globalContext().defaultGenerator({at::kCUDA, device}));
  }
  return generators;
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
  const bool seeded = std::any_of(generators_.begin(), generators_.end(), [&trace](const Watched& before) {
    const Watched now = look_at(before.generator);
    return now.seed != before.seed || (same_bytes(now.state, before.state) && draws_from(trace, before.generator));
  });
  if (!seeded) return std::nullopt;
  return GraphBreak{BreakCode::unsupported_op,
                    "at::manual_seed",
                    {},
                    "seeds a generator that LibTorch draws from",
                    "seed it outside the compiled callable"};
}

Surroundings::Surroundings() : modes_(Modes::current()), generators_(default_generators()) {}

std::optional<GraphBreak> Surroundings::changed_by(const Trace& trace) const {
  if (const auto modes = modes_.differences(Modes::current()); !modes.empty()) {
    return GraphBreak{BreakCode::unsupported_op,
                      {},
                      {},
                      "leaves a mode changed: " + modes[0].guard + " was " + modes[0].was + ", is " + modes[0].is,
                      "change it outside the compiled callable, or put it back"};
  }
  return generators_.seeded_by(trace);
}

}  // namespace sinter::frontend
