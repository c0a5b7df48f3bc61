#include "compiler/kernel/kernel.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace sinter::kernel {
namespace {

/// Elements an access touches, counting repeats of a broadcast, and of windows that overlap, once.
int64_t footprint(const ir::Index& index, const std::vector<int64_t>& extents) {
  int64_t count = 1;
  int64_t range = 1;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (!depends_on(index, d)) continue;
    count *= extents[d];
    range += std::abs(index.affine.strides[d]) * (extents[d] - 1);
  }
  return index.is_affine() ? std::min(count, range) : count;
}

/// Calls `visit(param, index)` for every load from memory, gather and store.
template <class Visit>
void for_each_access(const Kernel& kernel, Visit&& visit) {
  for (const Instruction& instruction : kernel.body) {
    const Load* load = memory_load(kernel, instruction);
    if (load != nullptr) visit(kernel.params[load->param], load->index);
    const auto* gather = std::get_if<Gather>(&instruction.operation);
    if (gather != nullptr) visit(kernel.params[gather->param], gather->index);
  }
  for (const Store& store : kernel.stores) visit(kernel.params[store.param], store.index);
}

/// True when neighbours along a loop are neighbours in memory.
bool is_contiguous_along(const ir::Index& index, size_t loop) {
  return index.is_affine() && std::abs(index.affine.strides[loop]) == 1;
}

}  // namespace

int64_t Kernel::row_points() const {
  int64_t count = 1;
  for (size_t d = extents.size() - reduced; d < extents.size(); ++d) count *= extents[d];
  return count;
}

int64_t Kernel::rows() const {
  int64_t count = 1;
  for (size_t d = 0; d + reduced < extents.size(); ++d) count *= extents[d];
  return count;
}

int64_t Kernel::group_rows() const {
  const bool joins = std::ranges::any_of(stores, [](const Store& store) { return store.over_group.has_value(); });
  return joins ? extents[extents.size() - reduced - 1] : 1;
}

const Load* memory_load(const Kernel& kernel, const Instruction& instruction) {
  const auto* load = std::get_if<Load>(&instruction.operation);
  return load != nullptr && kernel.params[load->param].role != Param::Role::host_scalar ? load : nullptr;
}

Operands operands_of(const Kernel& kernel) {
  Operands operands;
  for (const Instruction& instruction : kernel.body) {
    const auto* compute = std::get_if<Compute>(&instruction.operation);
    const auto* reduce = std::get_if<Reduce>(&instruction.operation);
    const auto* load = std::get_if<Load>(&instruction.operation);
    std::vector<Slot> slots;
    if (compute != nullptr) slots = compute->operands;
    if (reduce != nullptr) slots = {reduce->operand};
    if (load != nullptr && load->guard) slots = {*load->guard};
    if (const auto* gather = std::get_if<Gather>(&instruction.operation)) slots = positions_of(*gather);
    operands.push_back(std::move(slots));
  }
  return operands;
}

std::vector<bool> live_slots(const Kernel& kernel, const Operands& operands) {
  std::vector<bool> live(kernel.body.size(), false);
  for (const Store& store : kernel.stores) live[store.value] = true;
  for (size_t slot = live.size(); slot-- > 0;) {
    if (!live[slot]) continue;
    for (const Slot operand : operands[slot]) live[operand] = true;
  }
  return live;
}

bool has_guards(const Kernel& kernel) {
  return std::ranges::any_of(kernel.body, [](const Instruction& instruction) {
    return std::holds_alternative<Inside>(instruction.operation);
  });
}

bool has_places(const Kernel& kernel) {
  return std::ranges::any_of(kernel.body, [](const Instruction& instruction) {
    return std::holds_alternative<Gather>(instruction.operation) ||
           std::holds_alternative<Position>(instruction.operation);
  });
}

std::vector<Slot> positions_of(const Gather& gather) {
  std::vector<Slot> slots;
  for (const Gather::Term& term : gather.terms) slots.push_back(term.position);
  return slots;
}

bool varies_in_row(const Kernel& kernel, const ir::Index& index) {
  for (size_t d = kernel.extents.size() - kernel.reduced; d < kernel.extents.size(); ++d) {
    if (depends_on(index, d)) return true;
  }
  return false;
}

namespace {

/// Bytes that a point of a row reads and writes which lie beside those of the next point, and of the next row.
struct Neighbours {
  int64_t along = 0;
  int64_t across = 0;
};

Neighbours neighbours(const Kernel& kernel) {
  const size_t row_loop = kernel.extents.size() - kernel.reduced - 1;
  Neighbours bytes;
  for_each_access(kernel, [&](const Param& param, const ir::Index& index) {
    if (!varies_in_row(kernel, index)) return;
    const bool shared = index.is_affine() && index.affine.strides[row_loop] == 0;  // by rows next to each other
    if (is_contiguous_along(index, kernel.extents.size() - 1) && !shared) bytes.along += ir::bytes_of(param.dtype);
    if (is_contiguous_along(index, row_loop)) bytes.across += ir::bytes_of(param.dtype);
  });
  return bytes;
}

}  // namespace

bool runs_across_rows(const Kernel& kernel) {
  if (kernel.extents.size() == kernel.reduced) return false;
  const Neighbours bytes = neighbours(kernel);
  return bytes.across > bytes.along;
}

bool turns_rows(const Kernel& kernel) {
  if (kernel.reduced == 0 || kernel.extents.size() == kernel.reduced) return false;
  const Neighbours bytes = neighbours(kernel);
  return bytes.across > 0 && bytes.along > 0;
}

std::vector<Level> levels(const Kernel& kernel) {
  std::vector<Level> all;
  all.reserve(kernel.body.size());
  for (const Instruction& instruction : kernel.body) {
    Level level = kernel.reduced == 0 ? Level::element : Level::row;
    if (const auto* load = std::get_if<Load>(&instruction.operation)) {
      const bool by_value = kernel.params[load->param].role == Param::Role::host_scalar;
      if (!by_value && varies_in_row(kernel, load->index)) level = Level::element;
      if (load->guard) level = std::max(level, all[*load->guard]);
    } else if (const auto* gather = std::get_if<Gather>(&instruction.operation)) {
      if (varies_in_row(kernel, gather->index)) level = Level::element;
      for (const Slot position : positions_of(*gather)) level = std::max(level, all[position]);
    } else if (const auto* position = std::get_if<Position>(&instruction.operation)) {
      if (varies_in_row(kernel, position->index)) level = Level::element;
    } else if (const auto* inside = std::get_if<Inside>(&instruction.operation)) {
      if (varies_in_row(kernel, inside->index)) level = Level::element;
    } else if (const auto* compute = std::get_if<Compute>(&instruction.operation)) {
      for (const Slot operand : compute->operands) level = std::max(level, all[operand]);
    }
    all.push_back(level);
  }
  return all;
}

int64_t Kernel::numel() const {
  int64_t count = 1;
  for (const int64_t extent : extents) count *= extent;
  return count;
}

int64_t Kernel::bytes_moved() const {
  if (numel() == 0) return 0;
  std::vector<int64_t> elements(params.size(), 0);
  std::vector<int64_t> parts(params.size(), 0);  // parts of one tensor add up
  const auto touch = [&](uint32_t param, const ir::Index& index) {
    elements[param] = std::max(elements[param], footprint(index, extents));
  };
  const std::vector<Level> level = levels(*this);
  for (size_t slot = 0; slot < body.size(); ++slot) {
    if (const auto* gather = std::get_if<Gather>(&body[slot].operation)) {
      elements[gather->param] = std::max(elements[gather->param], level[slot] == Level::row ? rows() : numel());
    }
    const auto* load = std::get_if<Load>(&body[slot].operation);
    if (load == nullptr || params[load->param].role == Param::Role::host_scalar) continue;
    if (load->guard) {
      parts[load->param] += std::min(load->reach, footprint(load->index, extents));
    } else {
      touch(load->param, load->index);
    }
  }
  for (const auto& store : stores) parts[store.param] += footprint(store.index, extents);
  int64_t bytes = 0;
  for (size_t p = 0; p < params.size(); ++p) {
    bytes += std::max(elements[p], parts[p]) * ir::bytes_of(params[p].dtype);
  }
  return bytes;
}

}  // namespace sinter::kernel
