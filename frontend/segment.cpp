#include "frontend/segment.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/clone.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>

#include "runtime/program.h"
#include "runtime/ranges.h"

namespace sinter::frontend {
namespace {

/// True for a plan that has work for a device: others only hand tensors on.
bool has_work(const Plan& plan) {
  return std::any_of(plan.steps.begin(), plan.steps.end(), [](const auto& step) {
    return std::holds_alternative<Launch>(step) || std::holds_alternative<RunCall>(step);
  });
}

}  // namespace

std::vector<bool> without_own_memory(const Plan& plan, size_t first) {
  std::vector<bool> shared;
  for (size_t i = first; i < plan.outputs.size(); ++i) {
    const BufferId memory = runtime::root_of(plan, plan.outputs[i]).buffer;
    const BufferKind kind = plan.buffers[memory.index].kind;
    bool other = kind == BufferKind::input || kind == BufferKind::state;
    for (size_t j = first; j < i; ++j) other = other || runtime::root_of(plan, plan.outputs[j]).buffer == memory;
    shared.push_back(other);
  }
  return shared;
}

CompiledSegment::CompiledSegment(const Source& source, CompileOptions compile_options,
                                 runtime::ExecutableOptions options, uint32_t inputs, const Bindings& bindings)
    : key_(source.key), reads_(source.segment->read ? source.segment->graph.outputs.size() : 0) {
  compile_options.stage = ir::Stage::functional;
  plan_ = std::make_shared<const Plan>(
      sinter::compile(passes::graph_giving(*source.segment, source.given), compile_options, record_));
  copied_ = without_own_memory(*plan_, reads_);
  host_ = std::make_unique<TorchHost>(plan_, *source.opaques);
  options.graphs = options.graphs && has_work(*plan_);
  options.report_mutex = &mutex_;
  options.ranges = runtime::nvtx_ranges();
  executable_ = runtime::Executable::build(plan_, *host_, options, record_);
  prepare(inputs, bindings);
}

void CompiledSegment::prepare(uint32_t inputs, const Bindings& bindings) const {
  const c10::OptionalDeviceGuard device(device_to_set(*plan_));
  const auto frame = host_->make_torch_frame();
  // What is computed once depends on state alone: tensors of earlier segments need not be there.
  const at::Tensor none(at::detail::empty_cpu({0}, at::kFloat));
  std::vector<const at::Tensor*> tensors(bindings.inputs.begin(), bindings.inputs.end());
  for (const Buffer& buffer : plan_->buffers) {
    if (buffer.kind == BufferKind::input && buffer.index >= inputs) {
      tensors.resize(std::max<size_t>(tensors.size(), buffer.index + 1), &none);
    }
  }
  if (!frame->bind_arguments(tensors, bindings.states, bindings.contents)) {
    throw InternalError("prepare", "a state tensor died while the function was compiled");
  }
  executable_->prepare(*frame);
}

bool CompiledSegment::run(const Bindings& bindings, std::vector<at::Tensor>& read, std::vector<at::Tensor>& made) {
  const FrameLease frame(frames_, *host_);
  if (!frame->bind_arguments(bindings.inputs, bindings.states, bindings.contents)) return false;
  executable_->run(*frame);
  for (size_t i = 0; i < reads_; ++i) read.push_back(frame->tensor(plan_->outputs[i]));
  for (size_t i = 0; i < copied_.size(); ++i) {
    const at::Tensor& tensor = frame->tensor(plan_->outputs[reads_ + i]);
    made.push_back(copied_[i] ? at::clone(tensor) : tensor);
  }
  return true;
}

bool CompiledSegment::finish(const Bindings& bindings, const OutputRules& rules, const detail::Flat& arguments,
                             detail::Replay& replay) {
  const FrameLease frame(frames_, *host_);
  if (!frame->bind_arguments(bindings.inputs, bindings.states, bindings.contents)) return false;
  try {
    executable_->run(*frame);
  } catch (const InternalError& error) {
    if (frame->writing()) throw HalfWritten(error);
    throw;
  } catch (const std::exception&) {
    if (!frame->writing()) return false;  // eager throws the same, with the writes it makes before
    throw;
  }
  note_writes(*plan_, arguments.tensors, bindings.states);
  rules.collect(*frame, arguments, bindings.states, replay);
  return true;
}

void CompiledSegment::add_to(EntryReport& report) const {
  const std::lock_guard lock(mutex_);
  for (const PhaseTime& phase : record_.phases) report.add_phase(phase.name, phase.seconds);
  report.kernels.insert(report.kernels.end(), record_.kernels.begin(), record_.kernels.end());
  report.externs.insert(report.externs.end(), record_.externs.begin(), record_.externs.end());
  report.notes.insert(report.notes.end(), record_.notes.begin(), record_.notes.end());
  report.memory.arena_bytes = std::max(report.memory.arena_bytes, record_.memory.arena_bytes);
  report.graphs += record_.graphs;
}

}  // namespace sinter::frontend
