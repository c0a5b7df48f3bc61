#include "compiler/codegen/cuda.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/cuda_column_writer.h"
#include "compiler/codegen/cuda_expression.h"
#include "compiler/codegen/cuda_prelude.h"
#include "compiler/codegen/cuda_row_writer.h"
#include "compiler/codegen/cuda_schedule.h"
#include "compiler/codegen/cuda_short_row_writer.h"
#include "compiler/codegen/cuda_transpose_writer.h"
#include "compiler/codegen/cuda_window_writer.h"
#include "compiler/codegen/cuda_writer.h"
#include "compiler/codegen/op_names.h"

namespace sinter::codegen {
namespace {

using kernel::Kernel;

std::string comment_of(const Kernel& kernel, const std::string& schedule) {
  std::string text;
  for (const auto& line : kernel.comment) text += "// " + line + "\n";
  return text + fmt::format("// over [{}], {}\n", fmt::join(kernel.extents, ","), schedule);
}

std::string words_of(const Schedule& plan) { return fmt::format("{} x {} elements a thread", plan.unroll, plan.width); }

std::string words_of(const TransposeSchedule& plan) {
  return fmt::format("squares of {0} x {0} in shared memory", plan.side);
}

std::string words_of(const RowSchedule& plan) {
  return fmt::format("{} threads a row{}, {} x {} elements a thread{}{}", plan.threads,
                     plan.across ? ", neighbours on other rows" : "", plan.steps, plan.width,
                     plan.keep == Keep::nothing ? ", read again in every pass" : "",
                     plan.group > 1 ? fmt::format(", {} rows joined one after the other", plan.group) : "");
}

std::string words_of(const ShortRowSchedule& plan) {
  return fmt::format("{} threads a row, {} elements a thread, in the order of the values", plan.threads, plan.width);
}

std::string words_of(const ColumnSchedule& plan) {
  return fmt::format("columns, {} neighbours a thread, {} threads for each", plan.width, plan.lanes);
}

std::string words_of(const WindowSchedule& plan) {
  return fmt::format("windows of {} outputs, {} elements a thread", plan.outputs, plan.width);
}

/// The widest access of every parameter. `Plan` says how every access reaches memory.
template <class Plan>
std::vector<KernelParam> params_of(const Kernel& kernel, const Plan& plan) {
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
    const auto* gather = std::get_if<kernel::Gather>(&kernel.body[slot].operation);
    if (gather != nullptr) note(gather->param, plan.loads[slot]);
  }
  for (size_t i = 0; i < plan.stores.size(); ++i) {
    note(kernel.stores[i].param, plan.stores[i]);
    params[kernel.stores[i].param].written = true;
  }
  return params;
}

template <class Plan>
KernelSource source_of(const Kernel& kernel, const Plan& plan, CudaFunction (*write)(const Kernel&, const Plan&)) {
  CudaFunction function = write(kernel, plan);
  KernelSource source;
  source.name = kernel.name;
  source.comment = comment_of(kernel, words_of(plan));
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

}  // namespace

KernelSource generate_cuda(const Kernel& kernel, const DeviceInfo& device) {
  if (const auto windows = window_schedule(kernel, device)) return source_of(kernel, *windows, cuda_window_function);
  if (const auto columns = column_schedule(kernel, device)) return source_of(kernel, *columns, cuda_column_function);
  if (const auto short_rows = short_row_schedule(kernel, device)) {
    return source_of(kernel, *short_rows, cuda_short_row_function);
  }
  if (kernel.reduced > 0) return source_of(kernel, row_schedule(kernel, device), cuda_row_function);
  if (const auto transpose = transpose_schedule(kernel, device)) {
    return source_of(kernel, *transpose, cuda_transpose_function);
  }
  return source_of(kernel, schedule(kernel, device), cuda_function);
}

}  // namespace sinter::codegen
