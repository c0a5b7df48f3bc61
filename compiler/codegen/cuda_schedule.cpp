#include "compiler/codegen/cuda_schedule.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "compiler/codegen/cuda_guards.h"
#include "compiler/codegen/cuda_lanes.h"

namespace sinter::codegen {
namespace {

using kernel::Kernel;
using kernel::Param;

constexpr int64_t max_unroll = 4;
constexpr uint32_t threads_per_block = 128;

LaneAccess access_of(const Reference& reference, const Kernel& kernel, const Schedule& plan) {
  using Kind = LaneAccess::Kind;
  const auto& extents = kernel.extents;
  if (plan.width == 1) return {.kind = Kind::uniform};
  if (plan.linear && is_linear(*reference.index, extents)) {
    return {.kind = Kind::vector,
            .chunk = chunk_of(*reference.param, reference.index->affine.offset, plan.width, kernel.generic_sizes)};
  }
  const bool crosses_rows = plan.linear && extents.size() > 1;
  if (crosses_rows) {
    const bool constant =
        reference.index->is_affine() &&
        std::ranges::all_of(reference.index->affine.strides, [](int64_t stride) { return stride == 0; });
    return {.kind = constant ? Kind::uniform : Kind::gather};
  }
  return access_along(reference, kernel, plan.width);
}

/// True when vectors of neighbouring points help: some store writes neighbours.
bool stores_vectors(const Kernel& kernel, const Schedule& plan) {
  return std::ranges::any_of(plan.stores,
                             [](const LaneAccess& a) { return a.kind == LaneAccess::Kind::vector && a.chunk > 1; }) ||
         kernel.stores.empty();
}

/// Vectors that cross rows have positions of their own in every lane.
void classify_gathers(const Kernel& kernel, Schedule& plan) {
  const std::vector<bool> uniform = uniform_slots(kernel, plan.loads, plan.shared, plan.width);
  const bool crosses_rows = plan.linear && kernel.extents.size() > 1;
  for (size_t slot = 0; slot < kernel.body.size(); ++slot) {
    const auto* gather = std::get_if<kernel::Gather>(&kernel.body[slot].operation);
    if (gather == nullptr) continue;
    plan.loads[slot] = crosses_rows && plan.width > 1 ? LaneAccess{.kind = LaneAccess::Kind::gather}
                                                      : gather_along(*gather, kernel, plan.width, uniform);
  }
}

void classify(const Kernel& kernel, Schedule& plan) {
  plan.shared = shared_guards(kernel, plan.width, plan.linear && kernel.extents.size() > 1);
  plan.loads.assign(kernel.body.size(), {});
  plan.stores.clear();
  for (size_t slot = 0; slot < kernel.body.size(); ++slot) {
    const auto* load = std::get_if<kernel::Load>(&kernel.body[slot].operation);
    if (load == nullptr) continue;
    const Param& param = kernel.params[load->param];
    const bool by_value = param.role == Param::Role::host_scalar;
    plan.loads[slot] =
        by_value ? LaneAccess{.kind = LaneAccess::Kind::scalar} : access_of({&param, &load->index}, kernel, plan);
    plan.loads[slot] = under_guard(*load, plan.loads[slot], plan.shared);
  }
  classify_gathers(kernel, plan);
  for (const auto& store : kernel.stores) {
    plan.stores.push_back(access_of({&kernel.params[store.param], &store.index}, kernel, plan));
  }
}

/// Every access that streams is contiguous over the whole nest, so vectors may cross rows.
bool streams_linearly(const Kernel& kernel) {
  const bool stores = std::ranges::all_of(
      kernel.stores, [&](const kernel::Store& store) { return is_linear(store.index, kernel.extents); });
  return stores && std::ranges::any_of(kernel.body, [&](const kernel::Instruction& instruction) {
           const auto* load = memory_load(kernel, instruction);
           return load != nullptr && is_linear(load->index, kernel.extents);
         });
}

void choose_width(const Kernel& kernel, const DeviceInfo& device, Schedule& plan) {
  const int64_t numel = kernel.numel();
  const int64_t enough_threads = std::max<int64_t>(1, int64_t{device.multiprocessors} * 64);
  int64_t wanted = preferred_width(kernel);
  // Few forms of a generic text serve all sizes: the full width, or one point at a time.
  const bool generic = kernel.generic_sizes;
  while (!generic && wanted > 1 && numel / wanted < enough_threads) wanted /= 2;

  const bool one_loop = kernel.extents.size() <= 1;
  plan.width = wanted;
  plan.linear = one_loop;
  if (!one_loop) {
    while (kernel.extents.back() % plan.width != 0) plan.width = generic ? 1 : plan.width / 2;
    if (plan.width * 2 < wanted && streams_linearly(kernel)) {
      plan.width = wanted;
      plan.linear = true;
    }
  }
  if (!generic && (one_loop || !plan.linear)) plan.width = width_of_guards(kernel, plan.width);
  classify(kernel, plan);
  if (plan.width > 1 && !stores_vectors(kernel, plan)) {
    plan.width = 1;
    classify(kernel, plan);
  }
}

/// The largest power of two, at most `bound`, that divides the number.
int64_t power_of_two_in(int64_t number, int64_t bound) {
  int64_t power = 1;
  while (power * 2 <= bound && number % (power * 2) == 0) power *= 2;
  return power;
}

/// The outer loop along which a load reads neighbours; nothing when it has none.
std::optional<size_t> neighbour_loop(const Kernel& kernel, const ir::Index& index) {
  if (!index.is_affine()) return std::nullopt;
  for (size_t d = 0; d + 1 < kernel.extents.size(); ++d) {
    if (index.affine.strides[d] == 1) return d;
  }
  return std::nullopt;
}

/// Neighbours along a loop that threads next to each other read: those of a sector where the loop is made of sectors,
/// else all of it where it fits a line (the nine elements of a 3x3 filter).
int64_t tile_rows(int64_t extent, int64_t size) {
  const int64_t rows = power_of_two_in(extent, sector_bytes / size);
  return rows * size < sector_bytes && extent * size <= line_bytes ? extent : rows;
}

/// A tile for the widest load that steps over memory lane by lane but reads neighbours along another loop.
Tile choose_tile(const Kernel& kernel, const Schedule& plan) {
  Tile tile;
  int64_t widest = 0;
  for (size_t slot = 0; slot < kernel.body.size(); ++slot) {
    const auto* load = memory_load(kernel, kernel.body[slot]);
    if (load == nullptr || load->index.affine.strides.empty() || load->index.affine.strides.back() < 2) continue;
    const int64_t size = ir::bytes_of(kernel.params[load->param].dtype);
    const auto dim = neighbour_loop(kernel, load->index);
    if (!dim || size <= widest || plan.linear) continue;
    widest = size;
    tile.dim = *dim;
    tile.rows = tile_rows(kernel.extents[*dim], size);
    tile.vectors = power_of_two_in(kernel.extents.back() / plan.width, sector_bytes / tile.rows);
    tile.groups = power_of_two_in(kernel.extents[*dim] / tile.rows, line_bytes / sector_bytes);
  }
  return tile.used() ? tile : Tile{};
}

/// Bytes that one vector of the widest streaming access takes.
int64_t streamed_bytes(const Kernel& kernel, const Schedule& plan) {
  int64_t bytes = 0;
  for (const auto& store : kernel.stores) bytes = std::max(bytes, ir::bytes_of(kernel.params[store.param].dtype));
  for (size_t slot = 0; slot < kernel.body.size(); ++slot) {
    const auto* load = memory_load(kernel, kernel.body[slot]);
    const bool repeats = load == nullptr || (plan.width > 1 && plan.loads[slot].kind == LaneAccess::Kind::uniform);
    if (!repeats) bytes = std::max(bytes, ir::bytes_of(kernel.params[load->param].dtype));
  }
  return bytes * plan.width;
}

/// Vectors a thread keeps in flight. One 16-byte access a thread reaches the memory's full speed (measured on H200,
/// where more is slower); narrower ones are doubled up while the device still has blocks to share.
int64_t choose_unroll(const Kernel& kernel, const DeviceInfo& device, const Schedule& plan) {
  const int64_t bytes = streamed_bytes(kernel, plan);
  const int64_t enough_blocks = std::max<int64_t>(1, int64_t{device.multiprocessors} * 16);
  int64_t unroll = 1;
  while (unroll * 2 <= max_unroll && unroll * bytes < access_bytes &&
         plan.vectors >= unroll * 2 * threads_per_block * enough_blocks) {
    unroll *= 2;
  }
  return unroll;
}

}  // namespace

Schedule schedule(const Kernel& kernel, const DeviceInfo& device) {
  Schedule plan;
  const int64_t numel = kernel.numel();
  if (numel == 0) return plan;
  choose_width(kernel, device, plan);
  plan.tile = choose_tile(kernel, plan);
  plan.vectors = numel / plan.width;
  plan.tail = numel % plan.width;
  plan.unroll = kernel.generic_sizes ? 1 : choose_unroll(kernel, device, plan);

  const auto threads = static_cast<uint64_t>(std::max((plan.vectors + plan.unroll - 1) / plan.unroll, plan.tail));
  plan.block = static_cast<uint32_t>(std::clamp<uint64_t>(std::bit_ceil(threads), 32, threads_per_block));
  if (kernel.generic_sizes) plan.block = threads_per_block;
  const auto vectors_per_block = static_cast<int64_t>(plan.block) * plan.unroll;
  plan.grid = static_cast<uint32_t>(std::max<int64_t>(1, (plan.vectors + vectors_per_block - 1) / vectors_per_block));
  plan.wide = needs_wide_index(kernel, plan.grid * vectors_per_block * plan.width);
  return plan;
}

}  // namespace sinter::codegen
