#include "runtime/plan_executable.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace sinter::runtime {

PlanExecutable::PlanExecutable(std::shared_ptr<const Plan> plan, Host& host, Ranges* ranges)
    : plan_(std::move(plan)),
      host_(host),
      ranges_(ranges),
      once_(flatten(*plan_, plan_->once)),
      steps_(flatten(*plan_, plan_->steps)) {
  for (uint32_t i = 0; i < plan_->buffers.size(); ++i) {
    if (plan_->buffers[i].kind == BufferKind::frozen) frozen_.push_back(BufferId{i});
  }
  std::vector<BufferId> kept;
  for (BufferId output : plan_->outputs) {
    const BufferId root = root_of(*plan_, output).buffer;
    const BufferKind kind = plan_->buffers[root.index].kind;
    if (kind != BufferKind::frozen) continue;
    kept.push_back(output);
    if (std::find(kept_outputs_.begin(), kept_outputs_.end(), root) == kept_outputs_.end()) {
      kept_outputs_.push_back(root);
    }
  }
  kept_binds_ = binds_for(*plan_, kept);
}

void PlanExecutable::prepare(Frame& frame) {
  if (plan_->once.empty() || !may_wait()) return;
  execute(once_, frame);
  wait();
  kept_ = host_.make_frame(*plan_);
  kept_on_ = stream_of_memory();
  for (BufferId buffer : frozen_) kept_->share(buffer, frame, buffer);
}

void PlanExecutable::run(Frame& frame, size_t started) {
  const RangeScope range(listening_ranges(ranges_), plan_->name);
  run_call(frame, started);
}

void PlanExecutable::run_call(Frame& frame, size_t /*started*/) {
  share_frozen(frame);
  execute(steps_, frame);
  copy_kept_outputs(frame);
}

void PlanExecutable::share_frozen(Frame& frame) {
  if (plan_->once.empty()) return;
  if (kept_ == nullptr || !may_wait()) return execute(once_, frame);
  for (BufferId buffer : frozen_) frame.share(buffer, *kept_, buffer);
}

void PlanExecutable::copy_kept_outputs(Frame& frame) {
  for (BufferId buffer : kept_outputs_) {
    const ir::Type& type = plan_->buffers[buffer.index].type;
    const void* from = frame.data(buffer);
    frame.allocate(buffer);  // `from` stays alive: this executable or the frontend keeps it
    const int64_t bytes = span_bytes(type);
    if (bytes == 0) continue;
    if (type.device.kind == ir::Device::Kind::cpu) {
      std::memcpy(frame.data(buffer), from, static_cast<size_t>(bytes));
    } else {
      copy_on_device(frame.data(buffer), from, bytes);
    }
  }
  for (BufferId buffer : kept_binds_) frame.bind(buffer);
}

std::vector<uint32_t> launched_kernels(const Plan& plan) {
  std::set<uint32_t> kernels;
  for (const auto* steps : {&plan.once, &plan.steps}) {
    for (const Step& step : *steps) {
      const auto* launch = std::get_if<Launch>(&step);
      if (launch != nullptr && plan.kernels[launch->kernel].numel > 0) kernels.insert(launch->kernel);
    }
  }
  return {kernels.begin(), kernels.end()};
}

KernelRecord record_of(const Plan& plan, uint32_t kernel) {
  const KernelSource& source = plan.kernels[kernel];
  KernelRecord record;
  record.name = source.name;
  record.ops = source.ops;
  record.modules = source.modules;
  record.sources = source.sources;
  record.bytes = source.bytes;
  record.launches = std::count_if(plan.steps.begin(), plan.steps.end(), [&](const Step& step) {
    const auto* launch = std::get_if<Launch>(&step);
    return launch != nullptr && launch->kernel == kernel;
  });
  return record;
}

}  // namespace sinter::runtime
