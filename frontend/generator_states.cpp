#include "frontend/generator_states.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <algorithm>
#include <mutex>

#include "compiler/support/planted.h"
#include "frontend/convert.h"
#include "frontend/cuda.h"

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

bool is_default(const at::Generator& generator) { return generator == default_generator(generator.device()); }

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

GeneratorStates::GeneratorStates(const std::vector<at::Generator>& generators) {
  for (const at::Generator& generator : generators) saved_.push_back(save(generator));
}

// A generator of CUDA tells its whole state only while its stream is not being recorded, its offset always. One of the
// CPU would make a tensor of it.
GeneratorStates::Saved GeneratorStates::save(at::Generator generator) {
  const std::lock_guard lock(generator.mutex());
  c10::GeneratorImpl* impl = generator.unsafeGetGeneratorImpl();
  if (auto* cpu = dynamic_cast<at::CPUGeneratorImpl*>(impl)) {
    return {std::move(generator),
            CpuState{cpu->engine(), cpu->next_float_normal_sample(), cpu->next_double_normal_sample()}};
  }
  if (const auto drawn = cuda::drawn_by(generator)) return {std::move(generator), CudaOffset{*drawn}};
  return {generator, generator.get_state()};
}

void GeneratorStates::rewind() {
  if (planted(Bug::generators_not_rewound)) return;
  for (Saved& saved : saved_) rewind(saved);
}

void GeneratorStates::rewind(Saved& saved) {
  const std::lock_guard lock(saved.generator.mutex());
  if (const auto* state = std::get_if<CpuState>(&saved.state)) {
    auto& cpu = *saved.generator.get<at::CPUGeneratorImpl>();
    cpu.set_engine(state->engine);
    cpu.set_next_float_normal_sample(state->next_float);
    cpu.set_next_double_normal_sample(state->next_double);
  } else if (const auto* offset = std::get_if<CudaOffset>(&saved.state)) {
    cuda::rewind(saved.generator, *offset);
  } else {
    saved.generator.set_state(std::get<WholeState>(saved.state));
  }
}

}  // namespace sinter::frontend
