#include "frontend/generator_states.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>

#include <algorithm>
#include <mutex>

#include "frontend/convert.h"

namespace sinter::frontend {
namespace {

at::Generator default_generator(c10::Device device) {
  if (device.is_cpu()) return at::detail::getDefaultCPUGenerator();
  return at::globalContext().defaultGenerator(device);
}

void add(std::vector<at::Generator>& known, at::Generator generator) {
  if (std::ranges::find(known, generator) == known.end()) known.push_back(std::move(generator));
}

/// True when a call was given generators of its own.
bool add_given(std::vector<at::Generator>& known, const ir::Node& node, const Trace& trace) {
  bool given = false;
  for (const ir::Arg& arg : node.args) {
    const auto* opaque = std::get_if<ir::Opaque>(&arg.data);
    if (opaque == nullptr || !trace.opaques.at(opaque->index).isGenerator()) continue;
    add(known, trace.opaques[opaque->index].toGenerator());
    given = true;
  }
  return given;
}

}  // namespace

std::vector<at::Generator> generators_of(const Trace& trace) {
  std::vector<at::Generator> found;
  for (const ir::NodeId id : trace.graph.order()) {
    const ir::Node& node = trace.graph.node(id);
    const auto* call = node.as<ir::Call>();
    if (call == nullptr || !call->random || add_given(found, node, trace)) continue;
    for (const ir::ValueId result : node.results) {
      const ir::Type& type = trace.graph.type(result);
      if (type.numel() > 0) add(found, default_generator(device_of(type.device)));
    }
  }
  return found;
}

// A generator of CUDA tells its whole state only while its stream is not being recorded, its offset always.
GeneratorStates::GeneratorStates(const std::vector<at::Generator>& generators) {
  for (at::Generator generator : generators) {
    const std::lock_guard lock(generator.mutex());
    Saved saved{.generator = generator, .state = {}, .offset = 0};
    if (generator.device().is_cuda()) {
      saved.offset = generator.get<at::CUDAGeneratorImpl>()->philox_offset_per_thread();
    } else {
      saved.state = generator.get_state();
    }
    saved_.push_back(std::move(saved));
  }
}

void GeneratorStates::rewind() {
  for (auto& [generator, state, offset] : saved_) {
    const std::lock_guard lock(generator.mutex());
    if (state.defined()) {
      generator.set_state(state);
    } else {
      generator.get<at::CUDAGeneratorImpl>()->set_philox_offset_per_thread(offset);
    }
  }
}

}  // namespace sinter::frontend
