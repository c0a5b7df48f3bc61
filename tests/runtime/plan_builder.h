#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compiler/plan.h"

/// Plans put together by hand.
namespace sinter::runtime::fake {

class PlanBuilder {
 public:
  explicit PlanBuilder(Backend backend) {
    plan.name = "test";
    plan.backend = backend;
    if (backend == Backend::cuda) plan.device = {ir::Device::Kind::cuda, 0};
  }

  /// A buffer of `count` floats on the plan's device.
  BufferId add(BufferKind kind, int64_t count, uint32_t index = 0, int64_t offset = 0, BufferId base = {}) {
    return add_typed(kind, ir::contiguous(ir::DType::f32, {count}, plan.device), index, offset, base);
  }
  BufferId add_typed(BufferKind kind, ir::Type type, uint32_t index = 0, int64_t offset = 0, BufferId base = {}) {
    plan.buffers.push_back({kind, std::move(type), index, offset, base});
    return BufferId{static_cast<uint32_t>(plan.buffers.size() - 1)};
  }
  /// A 0-dim CPU buffer.
  BufferId add_scalar(BufferKind kind, ir::DType dtype, uint32_t index = 0) {
    return add_typed(kind, ir::contiguous(dtype, {}, {}), index);
  }
  uint32_t add_kernel(KernelSource source) {
    plan.kernels.push_back(std::move(source));
    return static_cast<uint32_t>(plan.kernels.size() - 1);
  }
  uint32_t add_call(std::string op, const std::vector<BufferId>& args, std::vector<BufferId> results);
  void launch(uint32_t kernel, const std::vector<KernelArg>& args) { plan.steps.push_back(Launch{kernel, args}); }
  void step(Step step) { plan.steps.push_back(std::move(step)); }

  Plan plan;
};

inline KernelArg at(BufferId buffer) { return {KernelArg::Pass::pointer, buffer}; }
inline KernelArg f64(BufferId buffer) { return {KernelArg::Pass::scalar_f64, buffer}; }
inline KernelArg i64(BufferId buffer) { return {KernelArg::Pass::scalar_i64, buffer}; }

}  // namespace sinter::runtime::fake
