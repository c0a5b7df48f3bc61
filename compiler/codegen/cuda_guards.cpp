#include "compiler/codegen/cuda_guards.h"

#include <algorithm>

#include "compiler/codegen/cuda_lanes.h"

namespace sinter::codegen {

using kernel::Kernel;

namespace {

/// Vectors begin and end where the answer changes.
bool is_shared(const kernel::Inside& inside, const Kernel& kernel, int64_t width, bool across) {
  if (width == 1) return true;
  if (across) return largest(inside.index, kernel.extents) == 0 && inside.index.affine.offset == 0;
  const auto lanes = lanes_of(inside.index, kernel.extents, width);
  if (!lanes || lanes->stride < 0) return false;
  const int64_t span = lanes->stride * width;
  return span == 0 || (lanes->alignment % span == 0 && inside.begin % span == 0 && inside.end % span == 0);
}

}  // namespace

const ir::Index* asked_index(const kernel::Instruction& instruction) {
  if (const auto* position = std::get_if<kernel::Position>(&instruction.operation)) return &position->index;
  const auto* inside = std::get_if<kernel::Inside>(&instruction.operation);
  return inside == nullptr ? nullptr : &inside->index;
}

std::vector<const ir::Index*> questions(const Kernel& kernel) {
  std::vector<const ir::Index*> all;
  for (const auto& instruction : kernel.body) {
    if (const ir::Index* index = asked_index(instruction)) all.push_back(index);
  }
  return all;
}

std::vector<bool> shared_guards(const Kernel& kernel, int64_t width, bool across) {
  std::vector<bool> shared(kernel.body.size(), false);
  for (size_t slot = 0; slot < kernel.body.size(); ++slot) {
    const auto& operation = kernel.body[slot].operation;
    if (const auto* inside = std::get_if<kernel::Inside>(&operation)) {
      shared[slot] = is_shared(*inside, kernel, width, across);
    } else if (const auto* compute = std::get_if<kernel::Compute>(&operation)) {
      shared[slot] = std::ranges::all_of(compute->operands, [&](kernel::Slot operand) { return shared[operand]; });
    }
  }
  return shared;
}

LaneAccess under_guard(const kernel::Load& load, const LaneAccess& access, const std::vector<bool>& shared) {
  return !load.guard || shared[*load.guard] ? access : LaneAccess{.kind = LaneAccess::Kind::gather};
}

int64_t width_of_guards(const Kernel& kernel, int64_t width) {
  for (int64_t narrower = width; narrower > 1; narrower /= 2) {
    const auto shared = shared_guards(kernel, narrower, false);
    bool all = true;
    for (size_t slot = 0; slot < kernel.body.size(); ++slot) {
      all = all && (shared[slot] || !std::holds_alternative<kernel::Inside>(kernel.body[slot].operation));
    }
    if (all) return narrower;
  }
  return width;
}

}  // namespace sinter::codegen
