#include "compiler/codegen/cuda_transpose_schedule.h"

#include <algorithm>

namespace sinter::codegen {
namespace {

using kernel::Kernel;

constexpr int64_t shortest_loop = 16;
constexpr int64_t fewest_squares = 4;
constexpr int64_t small_side = 32;
constexpr int64_t large_side = 64;  ///< of elements so small that a small square has few bytes under way
constexpr int64_t bytes_of_small_element = 2;
constexpr int64_t blocks_to_fill = 4;  ///< of each multiprocessor

/// The outer loop along which an access touches neighbours, where it does not along the innermost one.
std::optional<size_t> loop_of_neighbours(const ir::Index& index) {
  if (!index.is_affine()) return std::nullopt;
  const auto& strides = index.affine.strides;
  if (strides.empty() || strides.back() < 2) return std::nullopt;
  for (size_t loop = 0; loop + 1 < strides.size(); ++loop) {
    if (strides[loop] == 1) return loop;
  }
  return std::nullopt;
}

bool is_long_enough(const Kernel& kernel, size_t loop) {
  const int64_t square = small_side * small_side;
  return kernel.extents[loop] >= shortest_loop && kernel.extents.back() >= shortest_loop &&
         kernel.numel() >= fewest_squares * square;
}

bool writes_along_innermost(const Kernel& kernel) {
  return std::ranges::all_of(kernel.stores, [](const kernel::Store& store) {
    return store.index.is_affine() && !store.index.affine.strides.empty() && store.index.affine.strides.back() == 1;
  });
}

/// True where large squares cover the loops as well as small ones, and are enough to fill the device.
bool takes_large_squares(const Kernel& kernel, const TransposeSchedule& plan, const DeviceInfo& device) {
  if (kernel.generic_sizes || kernel.numel() / (large_side * large_side) < blocks_to_fill * device.multiprocessors) {
    return false;
  }
  for (const size_t loop : {plan.read_loop, kernel.extents.size() - 1}) {
    const int64_t extent = kernel.extents[loop];
    if (ceil_div(extent, large_side) * large_side != ceil_div(extent, small_side) * small_side) return false;
  }
  for (size_t slot = 0; slot < kernel.body.size(); ++slot) {
    if (plan.staged[slot] && ir::bytes_of(kernel.body[slot].dtype) > bytes_of_small_element) return false;
  }
  return true;
}

}  // namespace

std::optional<TransposeSchedule> transpose_schedule(const Kernel& kernel, const DeviceInfo& device) {
  if (kernel.reduced > 0 || has_places(kernel) || !writes_along_innermost(kernel)) return std::nullopt;
  TransposeSchedule plan;
  plan.staged.assign(kernel.body.size(), false);
  plan.loads.assign(kernel.body.size(), {.kind = LaneAccess::Kind::scalar});
  plan.stores.assign(kernel.stores.size(), {.kind = LaneAccess::Kind::uniform});
  std::optional<size_t> read_loop;
  for (size_t slot = 0; slot < kernel.body.size(); ++slot) {
    const auto* load = memory_load(kernel, kernel.body[slot]);
    if (load == nullptr) continue;
    plan.loads[slot].kind = LaneAccess::Kind::uniform;
    const auto loop = loop_of_neighbours(load->index);
    if (!loop || (read_loop && loop != read_loop) || !is_long_enough(kernel, *loop)) continue;
    read_loop = loop;
    plan.staged[slot] = true;
  }
  if (!read_loop) return std::nullopt;
  plan.read_loop = *read_loop;
  plan.side = takes_large_squares(kernel, plan, device) ? large_side : small_side;
  const int64_t read = kernel.extents[*read_loop];
  const int64_t written = kernel.extents.back();
  plan.grid = static_cast<uint32_t>(kernel.numel() / read / written * plan.squares(read) * plan.squares(written));
  plan.wide = needs_wide_index(kernel, kernel.numel());
  return plan;
}

}  // namespace sinter::codegen
