#include "compiler/codegen/cuda.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/cuda_expression.h"
#include "compiler/codegen/cuda_prelude.h"
#include "compiler/codegen/cuda_schedule.h"
#include "compiler/codegen/cuda_writer.h"
#include "compiler/codegen/op_names.h"

namespace sinter::codegen {
namespace {

using kernel::Kernel;

std::string comment_of(const Kernel& kernel, const Schedule& plan) {
  std::string text;
  for (const auto& line : kernel.comment) text += "// " + line + "\n";
  return text + fmt::format("// over [{}], {} x {} elements a thread\n", fmt::join(kernel.extents, ","), plan.unroll,
                            plan.width);
}

/// The widest access of every parameter.
std::vector<KernelParam> params_of(const Kernel& kernel, const Schedule& plan) {
  std::vector<KernelParam> params(kernel.params.size());
  const auto note = [&](uint32_t param, const LaneAccess& access) {
    if (access.kind == LaneAccess::Kind::scalar) return;
    const int64_t elements = access.kind == LaneAccess::Kind::vector ? access.chunk : 1;
    const int64_t bytes = elements * ir::bytes_of(kernel.params[param].dtype);
    params[param].alignment = std::max(params[param].alignment, bytes);
  };
  for (size_t slot = 0; slot < plan.loads.size(); ++slot) {
    const auto* load = std::get_if<kernel::Load>(&kernel.body[slot].operation);
    if (load != nullptr) note(load->param, plan.loads[slot]);
  }
  for (size_t i = 0; i < plan.stores.size(); ++i) {
    note(kernel.stores[i].param, plan.stores[i]);
    params[kernel.stores[i].param].written = true;
  }
  return params;
}

}  // namespace

KernelSource generate_cuda(const Kernel& kernel, const DeviceInfo& device) {
  const Schedule plan = schedule(kernel, device);
  CudaFunction function = cuda_function(kernel, plan);
  KernelSource source;
  source.name = kernel.name;
  source.comment = comment_of(kernel, plan);
  source.text = cuda_prelude(function.text) + function.text;
  source.params = params_of(kernel, plan);
  source.sizes = std::move(function.sizes);
  source.numel = kernel.numel();
  source.grid = {plan.grid, 1, 1};
  source.block = {plan.block, 1, 1};
  source.bytes = kernel.bytes_moved();
  source.ops = op_names(kernel);
  return source;
}

}  // namespace sinter::codegen
