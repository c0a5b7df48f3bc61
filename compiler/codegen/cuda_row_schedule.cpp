#include "compiler/codegen/cuda_row_schedule.h"

#include <algorithm>
#include <bit>

#include "compiler/codegen/cuda_expression.h"
#include "compiler/codegen/cuda_guards.h"
#include "compiler/kernel/nest.h"
#include "compiler/support/ceil_div.h"

namespace sinter::codegen {
namespace {

using kernel::Kernel;

constexpr int64_t most_threads = 1024;
constexpr int64_t threads_of_small_rows = 128;  ///< of a block whose warps work on rows of their own
constexpr int64_t kept_bytes = 64;              ///< of one thread, in registers, from pass to pass: short texts
constexpr int64_t most_kept_bytes = 128;        ///< where a block has no more threads to share a row
constexpr int64_t kept_bytes_of_pairs = 160;    ///< where a multiprocessor then holds two blocks, not one
constexpr int64_t most_kept_steps = 8;
constexpr int64_t most_steps_of_pairs = 16;
/// Of rows that fill no line, whoever reads them: threads of the rows beside them read the rest of it.
constexpr int64_t tiny_row_bytes = 32;
/// Of a multiprocessor, which has 64 registers for each of them; more where groups are more, for all are to be gone
/// through at one time: a few that had to wait would take as long again.
constexpr int64_t threads_of_groups = 1024;
constexpr int64_t most_loaded_at_once = 64;  ///< bytes of one thread, beside what its first pass loads anyway
constexpr int64_t fewest_warps_across = 4;   ///< of a block that works on 32 rows
constexpr int64_t most_warps_across = 32;

int64_t choose_width(const Kernel& kernel) {
  const int64_t wanted = preferred_width(kernel);
  int64_t width = wanted;
  while (kernel.extents.back() % width != 0) width = kernel.generic_sizes ? 1 : width / 2;
  return kernel.generic_sizes ? width : width_of_guards(kernel, width);
}

/// Bytes that one step of a thread keeps for later passes, and for later rows.
int64_t step_bytes(const Kernel& kernel, Keep keep, int64_t width) {
  const RowPasses passes = row_passes(kernel, operands_of(cuda_expressions(kernel)), keep);
  int64_t joined = 0;
  for (const kernel::Store& store : kernel.stores) {
    if (store.over_group) joined += ir::bytes_of(kernel.params[store.param].dtype);
  }
  return std::max<int64_t>(passes.most_kept_bytes(kernel) + joined, 1) * width;
}

/// Rows that are gone through at the same time.
int64_t rows_at_once(const Kernel& kernel) { return kernel.rows() / kernel.group_rows(); }

/// Bytes of the widest vector that a thread loads or stores.
int64_t vector_bytes(const Kernel& kernel, int64_t width) {
  int64_t widest = 1;
  for (const Reference& reference : references(kernel)) {
    if (varies_in_row(kernel, *reference.index)) widest = std::max(widest, ir::bytes_of(reference.param->dtype));
  }
  return widest * width;
}

/// Threads of a row that part of a warp holds: as few as keep most of them busy, where neighbours still fill lines.
int64_t part_of_warp(int64_t vectors, int64_t most_steps, int64_t bytes) {
  int64_t best = warp_threads;
  for (int64_t threads = warp_threads; threads >= 1; threads /= 2) {
    const int64_t steps = ceil_div(vectors, threads);
    const bool fills_lines = threads * bytes >= line_bytes || threads >= vectors || vectors * bytes <= tiny_row_bytes;
    if (steps > most_steps || !fills_lines) break;
    if (steps * threads < ceil_div(vectors, best) * best) best = threads;
  }
  return best;
}

/// True where half of a large block's threads hold a row too, so that two rows are under way on a multiprocessor: one
/// loads while the other computes.
bool pairs_up(const Kernel& kernel, const DeviceInfo& device, int64_t width) {
  const int64_t steps = ceil_div(kernel.row_points() / width, most_threads / 2);
  return steps * step_bytes(kernel, Keep::small, width) <= kept_bytes_of_pairs && steps <= most_steps_of_pairs &&
         rows_at_once(kernel) >= 2 * int64_t{device.multiprocessors};
}

int64_t choose_threads(const Kernel& kernel, const DeviceInfo& device, int64_t width, int64_t most_steps) {
  const int64_t vectors = kernel.row_points() / width;
  if (kernel.generic_sizes) {
    return std::clamp<int64_t>(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(vectors))), warp_threads,
                               most_threads);
  }
  int64_t threads = vectors <= warp_threads * most_steps
                        ? part_of_warp(vectors, most_steps, vector_bytes(kernel, width))
                        : std::min(most_threads, ceil_div(ceil_div(vectors, most_steps), warp_threads) * warp_threads);
  if (threads == most_threads && pairs_up(kernel, device, width)) return threads / 2;
  const int64_t enough = threads_that_fill(device);
  while (threads < vectors && threads < most_threads && rows_at_once(kernel) * threads < enough) {
    const int64_t useful = threads < warp_threads ? most_threads : ceil_div(vectors, warp_threads) * warp_threads;
    threads = std::min({threads * 2, most_threads, useful});
  }
  return threads;
}

/// Warps that share 32 rows: enough of them to fill the device, and no more than have work.
int64_t warps_across(const Kernel& kernel, const DeviceInfo& device) {
  const int64_t blocks = ceil_div(kernel.rows(), warp_threads);
  int64_t warps = fewest_warps_across;
  while (warps < most_warps_across && warps * 2 <= kernel.row_points() &&
         blocks * warps * warp_threads < threads_that_fill(device)) {
    warps *= 2;
  }
  return warps;
}

/// By slot: known before the points of a row are gone through.
std::vector<bool> values_of_row(const Kernel& kernel) {
  std::vector<bool> of_row;
  for (const kernel::Level level : levels(kernel)) of_row.push_back(level == kernel::Level::row);
  return of_row;
}

void classify(const Kernel& kernel, RowSchedule& plan) {
  using Kind = LaneAccess::Kind;
  plan.shared = shared_guards(kernel, plan.width, false);
  plan.loads.assign(kernel.body.size(), {.kind = Kind::scalar});
  const auto access = [&](uint32_t param, const ir::Index& index) {
    if (!varies_in_row(kernel, index)) return LaneAccess{.kind = Kind::uniform};
    return access_along({&kernel.params[param], &index}, kernel, plan.width);
  };
  for (size_t slot = 0; slot < kernel.body.size(); ++slot) {
    const auto* load = memory_load(kernel, kernel.body[slot]);
    if (load != nullptr) plan.loads[slot] = under_guard(*load, access(load->param, load->index), plan.shared);
  }
  const std::vector<bool> of_row = values_of_row(kernel);
  for (size_t slot = 0; slot < kernel.body.size(); ++slot) {
    const auto* gather = std::get_if<kernel::Gather>(&kernel.body[slot].operation);
    if (gather != nullptr) plan.loads[slot] = gather_along(*gather, kernel, plan.width, of_row);
  }
  for (const auto& store : kernel.stores) plan.stores.push_back(access(store.param, store.index));
}

int64_t steps_that_fit(const Kernel& kernel, int64_t width, int64_t bytes, int64_t most) {
  return std::clamp<int64_t>(bytes / step_bytes(kernel, Keep::small, width), 1, most);
}

/// Neighbours share a row.
RowSchedule along_rows(const Kernel& kernel, const DeviceInfo& device) {
  RowSchedule plan;
  plan.width = choose_width(kernel);
  plan.threads =
      choose_threads(kernel, device, plan.width, steps_that_fit(kernel, plan.width, kept_bytes, most_kept_steps));
  if (plan.threads > warp_threads) return plan;
  int64_t threads = threads_of_small_rows;
  while (threads > warp_threads && rows_at_once(kernel) * plan.threads < threads * device.multiprocessors) threads /= 2;
  plan.rows_per_block = threads / plan.threads;
  return plan;
}

/// Neighbours work on rows that lie next to each other.
RowSchedule across_rows(const Kernel& kernel, const DeviceInfo& device) {
  RowSchedule plan;
  plan.across = true;
  plan.threads = kernel.generic_sizes ? most_warps_across : warps_across(kernel, device);
  plan.rows_per_block = warp_threads;
  return plan;
}

/// What a thread may keep of its row.
Keep choose_keep(const Kernel& kernel, const RowSchedule& plan) {
  if (kernel.generic_sizes) return Keep::nothing;
  const bool pairs = plan.threads == most_threads / 2;
  const int64_t most = pairs ? steps_that_fit(kernel, plan.width, kept_bytes_of_pairs, most_steps_of_pairs)
                             : steps_that_fit(kernel, plan.width, most_kept_bytes, most_kept_steps);
  const bool fits = plan.steps <= most;
  if (!fits && plan.group == 1) return Keep::nothing;
  return plan.steps * step_bytes(kernel, Keep::dear, plan.width) <= most_kept_bytes ? Keep::dear : Keep::small;
}

uint32_t resident_groups(const RowSchedule& plan, const DeviceInfo& device) {
  const int64_t wanted = ceil_div(int64_t{plan.grid}, int64_t{std::max(device.multiprocessors, 1)});
  return static_cast<uint32_t>(
      std::clamp(wanted, threads_of_groups / plan.block, kernel::most_threads_of_groups / plan.block));
}

/// Threads that go through a group row by row have less under way than those of rows that run side by side: all of a
/// row is loaded at once.
RowPasses passes_of(const Kernel& kernel, const RowSchedule& plan) {
  RowPasses passes = row_passes(kernel, operands_of(cuda_expressions(kernel)), plan.keep);
  const bool has_room = passes.bytes_loaded_later(kernel) * plan.width * plan.steps <= most_loaded_at_once;
  if (plan.group > 1 && plan.keep != Keep::nothing && has_room) passes.load_in_first(kernel);
  return passes;
}

}  // namespace

RowSchedule row_schedule(const Kernel& kernel, const DeviceInfo& device) {
  RowSchedule plan =
      kernel.group_rows() == 1 && runs_across_rows(kernel) ? across_rows(kernel, device) : along_rows(kernel, device);
  plan.steps = ceil_div(kernel.row_points() / plan.width, plan.threads);
  plan.group = kernel.group_rows();
  plan.keep = choose_keep(kernel, plan);
  plan.block = static_cast<uint32_t>(plan.threads * plan.rows_per_block);
  plan.grid = static_cast<uint32_t>(ceil_div(rows_at_once(kernel), plan.rows_per_block));
  if (plan.group > 1) plan.resident = resident_groups(plan, device);
  plan.passes = passes_of(kernel, plan);
  plan.wide = needs_wide_index(kernel, kernel.numel());
  classify(kernel, plan);
  return plan;
}

}  // namespace sinter::codegen
