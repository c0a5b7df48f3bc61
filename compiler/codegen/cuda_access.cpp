#include "compiler/codegen/cuda_access.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "compiler/codegen/cuda_guards.h"
#include "compiler/codegen/cuda_lanes.h"
#include "compiler/support/planted.h"

namespace sinter::codegen {

using kernel::Kernel;
using kernel::Param;

namespace {

void move_to_end(ir::Affine& affine, size_t loop) {
  const auto at = affine.strides.begin() + static_cast<std::ptrdiff_t>(loop);
  std::rotate(at, at + 1, affine.strides.end());
}

void move_to_end(ir::Index& index, size_t loop) {
  move_to_end(index.affine, loop);
  for (ir::QuasiTerm& term : index.terms) move_to_end(term.inner, loop);
}

}  // namespace

std::vector<Reference> references(const Kernel& kernel) {
  std::vector<Reference> all;
  for (const auto& instruction : kernel.body) {
    if (const auto* load = memory_load(kernel, instruction)) all.push_back({&kernel.params[load->param], &load->index});
    const auto* gather = std::get_if<kernel::Gather>(&instruction.operation);
    if (gather != nullptr) all.push_back({&kernel.params[gather->param], &gather->index});
  }
  for (const auto& store : kernel.stores) all.push_back({&kernel.params[store.param], &store.index});
  return all;
}

int64_t chunk_of(const Param& param, int64_t alignment, int64_t width, bool all_or_one) {
  const int64_t size = ir::bytes_of(param.dtype);
  int64_t chunk = width;
  while (chunk > 1 && chunk * size > access_bytes) chunk /= 2;
  if (planted(Bug::cuda_alignment_ignored)) return chunk;
  while (chunk > 1 && (param.alignment % (chunk * size) != 0 || alignment % chunk != 0)) {
    chunk = all_or_one ? 1 : chunk / 2;
  }
  return chunk;
}

LaneAccess access_along(const Reference& reference, const Kernel& kernel, int64_t width) {
  using Kind = LaneAccess::Kind;
  if (width == 1) return {.kind = Kind::uniform};
  const auto lanes = lanes_of(*reference.index, kernel.extents, width);
  if (!lanes) return {.kind = Kind::gather};
  if (lanes->stride == 0) return {.kind = Kind::uniform};
  if (lanes->stride != 1) return {.kind = Kind::strided, .stride = lanes->stride};
  return {.kind = Kind::vector, .chunk = chunk_of(*reference.param, lanes->alignment, width, kernel.generic_sizes)};
}

LaneAccess gather_along(const kernel::Gather& gather, const Kernel& kernel, int64_t width,
                        const std::vector<bool>& uniform) {
  for (const kernel::Gather::Term& term : gather.terms) {
    if (!uniform[term.position]) return {.kind = LaneAccess::Kind::gather};
  }
  LaneAccess access = access_along({&kernel.params[gather.param], &gather.index}, kernel, width);
  if (access.kind == LaneAccess::Kind::strided) return {.kind = LaneAccess::Kind::gather};
  for (const kernel::Gather::Term& term : gather.terms) {
    while (term.stride % access.chunk != 0) access.chunk = kernel.generic_sizes ? 1 : access.chunk / 2;
  }
  return access;
}

std::vector<bool> uniform_slots(const Kernel& kernel, const std::vector<LaneAccess>& loads,
                                const std::vector<bool>& shared, int64_t width) {
  const kernel::Operands operands = operands_of(kernel);
  std::vector<bool> uniform(kernel.body.size(), false);
  for (size_t slot = 0; slot < uniform.size(); ++slot) {
    const auto& operation = kernel.body[slot].operation;
    const auto kind = loads[slot].kind;
    const bool reads_one = kind == LaneAccess::Kind::uniform || kind == LaneAccess::Kind::scalar;
    uniform[slot] = std::ranges::all_of(operands[slot], [&](kernel::Slot operand) { return uniform[operand]; });
    if (std::holds_alternative<kernel::Load>(operation)) uniform[slot] = uniform[slot] && reads_one;
    if (std::holds_alternative<kernel::Gather>(operation)) uniform[slot] = false;
    if (std::holds_alternative<kernel::Inside>(operation)) uniform[slot] = shared[slot];
    if (const auto* position = std::get_if<kernel::Position>(&operation)) {
      const auto lanes = lanes_of(position->index, kernel.extents, width);
      uniform[slot] = width == 1 || (lanes && lanes->stride == 0);
    }
  }
  return uniform;
}

int64_t preferred_width(const Kernel& kernel) {
  int64_t widest = 1;
  for (const auto& reference : references(kernel)) {
    int64_t footprint = 1;
    for (size_t d = 0; d < kernel.extents.size(); ++d) {
      if (!reference.index->is_affine() || reference.index->affine.strides[d] != 0) footprint *= kernel.extents[d];
    }
    if (footprint * 2 > kernel.numel()) widest = std::max(widest, ir::bytes_of(reference.param->dtype));
  }
  return std::max<int64_t>(1, access_bytes / widest);
}

bool needs_wide_index(const Kernel& kernel, int64_t points_dealt) {
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  const auto is_wide = [&](const ir::Index& index) {
    return largest(index, kernel.extents) > limit || index.affine.offset < -limit;
  };
  const auto reaches_far = [&](const kernel::Instruction& instruction) {
    const auto* gather = std::get_if<kernel::Gather>(&instruction.operation);
    if (gather == nullptr) return false;
    int64_t most = largest(gather->index, kernel.extents);
    for (const kernel::Gather::Term& term : gather->terms) most += std::abs(term.stride) * term.extent;
    return most > limit;
  };
  return points_dealt > limit || std::ranges::any_of(kernel.body, reaches_far) ||
         std::ranges::any_of(references(kernel),
                             [&](const Reference& reference) { return is_wide(*reference.index); }) ||
         std::ranges::any_of(questions(kernel), [&](const ir::Index* asked) { return is_wide(*asked); });
}

Kernel lanes_last(Kernel kernel, size_t lanes) {
  for (kernel::Instruction& instruction : kernel.body) {
    auto* load = std::get_if<kernel::Load>(&instruction.operation);
    if (load != nullptr && kernel.params[load->param].role != kernel::Param::Role::host_scalar) {
      move_to_end(load->index, lanes);
    }
    if (auto* gather = std::get_if<kernel::Gather>(&instruction.operation)) move_to_end(gather->index, lanes);
    if (auto* position = std::get_if<kernel::Position>(&instruction.operation)) move_to_end(position->index, lanes);
    if (auto* inside = std::get_if<kernel::Inside>(&instruction.operation)) move_to_end(inside->index, lanes);
  }
  for (kernel::Store& store : kernel.stores) move_to_end(store.index, lanes);
  const auto at = kernel.extents.begin() + static_cast<std::ptrdiff_t>(lanes);
  std::rotate(at, at + 1, kernel.extents.end());
  kernel.reduced = 0;
  return kernel;
}

}  // namespace sinter::codegen
