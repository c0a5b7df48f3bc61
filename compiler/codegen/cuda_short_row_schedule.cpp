#include "compiler/codegen/cuda_short_row_schedule.h"

#include <algorithm>
#include <bit>

#include "compiler/codegen/cuda_expression.h"
#include "compiler/codegen/row_passes.h"
#include "compiler/kernel/registers.h"
#include "compiler/support/ceil_div.h"

namespace sinter::codegen {
namespace {

using kernel::Kernel;
using Kind = LaneAccess::Kind;

constexpr int64_t threads_of_block = 128;
/// Values of a row that passes hold side by side; with more, a multiprocessor has registers for few threads.
constexpr size_t most_values_of_passes = 64;
/// Of a multiprocessor: a warp for each of its schedulers. Loads depend on no value, so a thread has many under way.
constexpr int64_t fewest_threads = 128;

/// Values of the row that a thread holds at once in passes: those from before the first one, and the sums of one.
size_t values_of_passes(const Kernel& kernel) {
  const RowPasses passes = row_passes(kernel, operands_of(cuda_expressions(kernel)), Keep::small);
  size_t sums = 0;
  for (const RowPass& pass : passes.passes) sums = std::max(sums, pass.reductions.size());
  return sums + passes.row_values.size();
}

int64_t choose_width_of_short_row(const Kernel& kernel, const DeviceInfo& device) {
  const int64_t points = kernel.row_points();
  int64_t width = std::min({static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(preferred_width(kernel)))),
                            kernel.extents.back(), points});
  const auto threads = [&] { return kernel.rows() * points / width; };
  while (width > 1 && points / width * 2 <= warp_threads &&
         threads() < int64_t{device.multiprocessors} * fewest_threads) {
    width /= 2;
  }
  return width;
}

/// True where a value lies right after another one in the same memory.
bool follows(const kernel::Store& store, const kernel::Store& before) {
  ir::Index index = before.index;
  ++index.affine.offset;
  return store.param == before.param && store.index == index;
}

/// True where the first of `count` neighbours is aligned for one access.
bool is_aligned(const Kernel& kernel, const kernel::Store& store, int64_t count) {
  const kernel::Param& param = kernel.params[store.param];
  const auto& affine = store.index.affine;
  return param.alignment >= count * ir::bytes_of(param.dtype) && store.index.is_affine() &&
         affine.offset % count == 0 && std::ranges::all_of(affine.strides, [&](int64_t s) { return s % count == 0; });
}

/// How many stores of values of the row, from this one on, one access can do.
int64_t stored_at_once(const Kernel& kernel, size_t first) {
  const auto& stores = kernel.stores;
  int64_t neighbours = 1;
  while (first + neighbours < stores.size() && follows(stores[first + neighbours], stores[first + neighbours - 1])) {
    ++neighbours;
  }
  int64_t count = access_bytes / ir::bytes_of(kernel.params[stores[first].param].dtype);
  while (count > 1 && (count > neighbours || !is_aligned(kernel, stores[first], count))) count /= 2;
  return count;
}

void classify_short_row(const Kernel& kernel, ShortRowSchedule& plan) {
  plan.loads.assign(kernel.body.size(), {.kind = Kind::scalar});
  for (size_t slot = 0; slot < kernel.body.size(); ++slot) {
    const kernel::Load* load = memory_load(kernel, kernel.body[slot]);
    if (load == nullptr) continue;
    plan.loads[slot] = varies_in_row(kernel, load->index)
                           ? access_along({&kernel.params[load->param], &load->index}, kernel, plan.width)
                           : LaneAccess{.kind = Kind::uniform};
  }
  plan.stores.resize(kernel.stores.size());
  for (size_t i = 0; i < kernel.stores.size();) {
    const kernel::Store& store = kernel.stores[i];
    if (varies_in_row(kernel, store.index)) {
      plan.stores[i++] = access_along({&kernel.params[store.param], &store.index}, kernel, plan.width);
      continue;
    }
    const int64_t count = stored_at_once(kernel, i);
    plan.stores[i] = {.kind = count > 1 ? Kind::vector : Kind::uniform, .chunk = count};
    for (int64_t k = 1; k < count; ++k) plan.stores[i + k] = {.kind = Kind::scalar};
    i += count;
  }
}

}  // namespace

std::optional<ShortRowSchedule> short_row_schedule(const Kernel& kernel, const DeviceInfo& device) {
  if (!kernel::has_short_rows(kernel) || values_of_passes(kernel) <= most_values_of_passes) return std::nullopt;
  ShortRowSchedule plan;
  plan.width = choose_width_of_short_row(kernel, device);
  plan.threads = kernel.row_points() / plan.width;
  if (plan.threads > warp_threads) return std::nullopt;
  plan.rows_per_block = threads_of_block / plan.threads;
  plan.block = static_cast<uint32_t>(threads_of_block);
  plan.grid = static_cast<uint32_t>(ceil_div(kernel.rows(), plan.rows_per_block));
  plan.wide = needs_wide_index(kernel, kernel.numel());
  classify_short_row(kernel, plan);
  return plan;
}

}  // namespace sinter::codegen
