#include "compiler/codegen/cuda_column_schedule.h"

#include <algorithm>

#include "compiler/codegen/cuda_expression.h"
#include "compiler/support/ceil_div.h"

namespace sinter::codegen {
namespace {

using kernel::Kernel;
using kernel::Slot;
using Kind = LaneAccess::Kind;

constexpr int64_t columns_of_a_block = 32;  ///< a line or half of one
constexpr int64_t fewest_columns = 8;       ///< of a block, where there are too few for each multiprocessor: a sector
constexpr uint32_t largest_block = 512;
constexpr int64_t fewest_points = 4;  ///< of a thread: what it joins with others is little beside them
constexpr int64_t most_held = 64;     ///< values of columns and sums of one thread, in registers
constexpr int64_t largest_batch = 4;
constexpr int64_t bytes_of_a_batch = 128;  ///< of one thread, in registers; twice as many where blocks are few

/// Columns of one 16-byte access of the widest element that streams.
int64_t widest_access(const Kernel& kernel) {
  int64_t widest = 1;
  for (const Reference& reference : references(kernel)) {
    if (varies_in_row(kernel, *reference.index)) widest = std::max(widest, ir::bytes_of(reference.param->dtype));
  }
  return access_bytes / widest;
}

/// Values that a thread holds for each of its columns.
int64_t held_values(const Kernel& kernel, const RowPasses& passes) {
  const auto values = std::ranges::count_if(passes.row_values, [&](Slot slot) {
    return !std::holds_alternative<kernel::Immediate>(kernel.body[slot].operation);
  });
  return values + static_cast<int64_t>(passes.passes.front().reductions.size());
}

/// How columns are reached; false where an element is not reached by vectors of them.
bool classify(const Kernel& kernel, const Kernel& turned, ColumnSchedule& plan) {
  plan.loads.assign(kernel.body.size(), {.kind = Kind::scalar});
  plan.stores.clear();
  for (Slot slot = 0; slot < kernel.body.size(); ++slot) {
    const kernel::Load* load = memory_load(turned, turned.body[slot]);
    if (load == nullptr) continue;
    plan.loads[slot] = access_along({&kernel.params[load->param], &load->index}, turned, plan.width);
    const bool element = varies_in_row(kernel, memory_load(kernel, kernel.body[slot])->index);
    if (element && plan.loads[slot].kind != Kind::vector && plan.loads[slot].kind != Kind::uniform) return false;
  }
  for (size_t i = 0; i < kernel.stores.size(); ++i) {
    const kernel::Store& store = turned.stores[i];
    plan.stores.push_back(access_along({&kernel.params[store.param], &store.index}, turned, plan.width));
    if (varies_in_row(kernel, kernel.stores[i].index) && plan.stores[i].kind != Kind::vector) return false;
  }
  return true;
}

bool fills(const ColumnSchedule& plan, const DeviceInfo& device) {
  return int64_t{plan.grid} * plan.block >= threads_that_fill(device);
}

void deal(const Kernel& kernel, const DeviceInfo& device, ColumnSchedule& plan) {
  const int64_t vectors = kernel.rows() / plan.width;
  const auto blocks = [&] { return ceil_div(vectors, plan.beside); };
  plan.beside = columns_of_a_block / plan.width;
  while (plan.beside > 1 && plan.beside * plan.width > fewest_columns && blocks() * 2 <= device.multiprocessors) {
    plan.beside /= 2;
  }
  // Where columns are short, a block has more of them, or most of its threads had nothing to add; up to one a thread.
  const auto idle = [&] { return kernel.row_points() * 2 <= plan.block / plan.beside; };
  const auto takes_more = [&] {
    return plan.beside < warp_threads && plan.beside * 2 * plan.width <= plan.block && vectors >= plan.beside * 2;
  };
  while (idle() && takes_more()) plan.beside *= 2;
  plan.grid = static_cast<uint32_t>(blocks());
  const auto has_room = [&] {
    return plan.block < largest_block && !fills(plan, device) &&
           kernel.row_points() * plan.beside >= fewest_points * 2 * int64_t{plan.block};
  };
  while (has_room()) plan.block *= 2;
  plan.lanes = plan.block / plan.beside;
}

/// Points of a batch: one after the other each would wait for memory, and for what the one before has stored.
int64_t batch_of(const Kernel& kernel, const DeviceInfo& device, const ColumnSchedule& plan) {
  int64_t bytes = 0;  // that a thread loads of one point
  for (const Slot slot : plan.passes.passes.front().elements) {
    if (memory_load(kernel, kernel.body[slot]) == nullptr) continue;
    const int64_t lanes = plan.loads[slot].kind == Kind::vector ? plan.width : 1;
    bytes += lanes * ir::bytes_of(kernel.body[slot].dtype);
  }
  const int64_t most = fills(plan, device) ? bytes_of_a_batch : bytes_of_a_batch * 2;
  const int64_t points = ceil_div(kernel.row_points(), plan.lanes);
  int64_t batch = largest_batch;
  while (batch > 1 && (batch * bytes > most || batch >= 2 * points)) batch /= 2;
  return batch;
}

}  // namespace

std::optional<ColumnSchedule> column_schedule(const Kernel& kernel, const DeviceInfo& device) {
  if (kernel.reduced == 0 || kernel.generic_sizes || has_guards(kernel) || has_places(kernel) ||
      kernel.group_rows() > 1 || !runs_across_rows(kernel)) {
    return std::nullopt;
  }
  ColumnSchedule plan;
  plan.passes = row_passes(kernel, operands_of(cuda_expressions(kernel)), Keep::nothing);
  if (plan.passes.passes.size() != 1) return std::nullopt;
  const size_t columns = kernel.extents.size() - kernel.reduced - 1;
  const Kernel turned = lanes_last(kernel, columns);
  plan.width = widest_access(kernel);
  const auto fits = [&] {
    return kernel.extents[columns] % plan.width == 0 && held_values(kernel, plan.passes) * plan.width <= most_held &&
           classify(kernel, turned, plan);
  };
  while (plan.width > 1 && !fits()) plan.width /= 2;
  if (plan.width == 1) return std::nullopt;
  deal(kernel, device, plan);
  plan.batch = batch_of(kernel, device, plan);
  plan.wide = needs_wide_index(kernel, kernel.numel());
  return plan;
}

}  // namespace sinter::codegen
