#pragma once

#include <variant>

#include "compiler/kernel/kernel.h"

namespace sinter::kernel {

/// Calls `visit` with the index of every access to memory and of every position, and with every question where a point
/// lies (Inside), which has an index and bounds.
template <class Visit>
void for_each_index(Kernel& kernel, Visit&& visit) {
  for (auto& instruction : kernel.body) {
    auto* load = std::get_if<Load>(&instruction.operation);
    if (load != nullptr && kernel.params[load->param].role != Param::Role::host_scalar) visit(load->index);
    if (auto* gather = std::get_if<Gather>(&instruction.operation)) visit(gather->index);
    if (auto* position = std::get_if<Position>(&instruction.operation)) visit(position->index);
    if (auto* inside = std::get_if<Inside>(&instruction.operation)) visit(*inside);
  }
  for (auto& store : kernel.stores) visit(store.index);
}

}  // namespace sinter::kernel
