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

}  // namespace

Surroundings::Generator Surroundings::Generator::of(at::Generator generator) {
  const std::lock_guard lock(generator.mutex());
  const uint64_t seed = generator.current_seed();
  return {generator, seed, generator.get_state()};
}

/// One that was given the seed it had stands where the same draws had brought it before, or further back.
bool Surroundings::Generator::was_seeded(bool drawn) const {
  const Generator now = of(generator);
  return now.seed != seed || (drawn && same_bytes(now.state, state));
}

Surroundings::Surroundings() : modes_(Modes::current()) {
  generators_.push_back(Generator::of(at::globalContext().defaultGenerator(at::kCPU)));
  for (c10::DeviceIndex device = 0; device < c10::cuda::device_count(); ++device) {
    if (!c10::cuda::hasPrimaryContext(device)) continue;
    generators_.push_back(Generator::of(at::globalContext().defaultGenerator({at::kCUDA, device})));
  }
}

std::optional<GraphBreak> Surroundings::changed(const ir::Graph& graph) const {
  if (const auto modes = modes_.differences(Modes::current()); !modes.empty()) {
    return GraphBreak{BreakCode::unsupported_op,
                      {},
                      {},
                      "leaves a mode changed: " + modes[0].guard + " was " + modes[0].was + ", is " + modes[0].is,
                      "change it outside the compiled callable, or put it back"};
  }
  const bool seeded = std::any_of(generators_.begin(), generators_.end(), [&](const Generator& before) {
    return before.was_seeded(draws_on(graph, device_of(before.generator.device())));
  });
  if (!seeded) return std::nullopt;
  return GraphBreak{BreakCode::unsupported_op,
                    "at::manual_seed",
                    {},
                    "seeds LibTorch's generators",
                    "seed them outside the compiled callable, or draw from a generator of its own"};
}

}  // namespace sinter::frontend
