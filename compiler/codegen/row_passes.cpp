#include "compiler/codegen/row_passes.h"

#include <algorithm>

#include "compiler/ir/op_cost.h"

namespace sinter::codegen {
namespace {

using kernel::Kernel;
using kernel::Level;
using kernel::Slot;

class Ordering {
 public:
  Ordering(const Kernel& kernel, const Operands& operands, Keep keep)
      : kernel_(kernel),
        operands_(operands),
        keep_(keep),
        live_(live_slots(kernel, operands)),
        levels_(kernel::levels(kernel)),
        known_after_(kernel.body.size(), 0) {}

  RowPasses run() {
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      for (const Slot operand : operands_[slot]) {
        known_after_[slot] = std::max(known_after_[slot], known_after_[operand]);
      }
      if (is_reduction(slot)) ++known_after_[slot];
      if (live_[slot]) passes_ = std::max(passes_, known_after_[slot]);
    }
    result_.passes.resize(passes_ + 1);
    place_values();
    place_stores();
    if (result_.passes.back().stores.empty()) result_.passes.pop_back();
    result_.kept.assign(kernel_.body.size(), false);
    result_.last_need.assign(kernel_.body.size(), 0);
    for (size_t p = 0; p < result_.passes.size(); ++p) {
      result_.passes[p].elements = elements_up_to(p);
      if (keep_ != Keep::nothing) choose_kept(p);
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool is_reduction(Slot slot) const {
    return std::holds_alternative<kernel::Reduce>(kernel_.body[slot].operation);
  }

  void place_values() {
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (!live_[slot] || levels_[slot] == Level::element) continue;
      const size_t after = known_after_[slot];
      if (is_reduction(slot)) {
        result_.passes[after - 1].reductions.push_back(slot);
      } else {
        (after == 0 ? result_.row_values : result_.passes[after - 1].row_values).push_back(slot);
      }
    }
  }

  void place_stores() {
    for (size_t i = 0; i < kernel_.stores.size(); ++i) {
      const kernel::Store& store = kernel_.stores[i];
      if (!varies_in_row(kernel_, store.index)) {
        result_.row_stores.push_back(i);
        continue;
      }
      const size_t known = known_after_[store.value];
      const bool waits = kernel_.params[store.param].in_place && reads_what_is_overwritten_after(known);
      result_.passes[waits ? passes_ : known].stores.push_back(i);
    }
  }

  /// True where a later pass computes elements from what some store may overwrite.
  [[nodiscard]] bool reads_what_is_overwritten_after(size_t pass) const {
    std::vector<bool> wanted(kernel_.body.size(), false);
    for (size_t later = pass + 1; later < result_.passes.size(); ++later) {
      for (const Slot reduction : result_.passes[later].reductions) wanted[operands_[reduction].front()] = true;
    }
    for (const kernel::Store& store : kernel_.stores) {
      if (known_after_[store.value] > pass) wanted[store.value] = true;
    }
    for (Slot slot = static_cast<Slot>(wanted.size()); slot-- > 0;) {
      if (!wanted[slot] || levels_[slot] == Level::row) continue;
      const auto* load = std::get_if<kernel::Load>(&kernel_.body[slot].operation);
      if (load != nullptr && kernel_.params[load->param].in_place) return true;
      for (const Slot operand : operands_[slot]) wanted[operand] = true;
    }
    return false;
  }

  void want_roots(const RowPass& pass, std::vector<bool>& wanted) const {
    for (const Slot reduction : pass.reductions) wanted[operands_[reduction].front()] = true;
    for (const size_t store : pass.stores) wanted[kernel_.stores[store].value] = true;
  }

  /// What the pass needs of its elements and earlier ones have not kept.
  std::vector<Slot> elements_up_to(size_t pass) {
    std::vector<bool> wanted(kernel_.body.size(), false);
    want_roots(result_.passes[pass], wanted);
    std::vector<Slot> elements;
    for (Slot slot = static_cast<Slot>(wanted.size()); slot-- > 0;) {
      if (!wanted[slot] || levels_[slot] == Level::row) continue;
      if (result_.kept[slot]) {
        result_.last_need[slot] = pass;
        continue;
      }
      for (const Slot operand : operands_[slot]) wanted[operand] = true;
      elements.push_back(slot);
    }
    std::ranges::reverse(elements);
    return elements;
  }

  /// Marks the elements of a pass from which later ones can go on.
  void choose_kept(size_t pass) {
    std::vector<bool> wanted(kernel_.body.size(), false);
    for (size_t later = pass + 1; later < result_.passes.size(); ++later) want_roots(result_.passes[later], wanted);
    std::vector<bool> here(kernel_.body.size(), false);
    for (const Slot slot : result_.passes[pass].elements) here[slot] = true;
    for (Slot slot = static_cast<Slot>(wanted.size()); slot-- > 0;) {
      if (!wanted[slot] || levels_[slot] == Level::row || result_.kept[slot]) continue;
      result_.kept[slot] = here[slot] && is_keepable(slot);
      if (result_.kept[slot]) continue;
      for (const Slot operand : operands_[slot]) wanted[operand] = true;
    }
  }

  [[nodiscard]] bool is_keepable(Slot slot) const {
    const auto& operation = kernel_.body[slot].operation;
    const bool loaded =
        std::holds_alternative<kernel::Load>(operation) || std::holds_alternative<kernel::Gather>(operation);
    if (keep_ != Keep::only_dear && (loaded || ir::is_half(kernel_.body[slot].dtype))) return true;
    const auto* compute = std::get_if<kernel::Compute>(&kernel_.body[slot].operation);
    return keep_ != Keep::small && compute != nullptr && ir::is_dear(compute->op);
  }

  const Kernel& kernel_;
  const Operands& operands_;
  Keep keep_;
  std::vector<bool> live_;
  std::vector<Level> levels_;
  std::vector<size_t> known_after_;  ///< by slot: passes that must have ended
  size_t passes_ = 0;                ///< that end with reductions
  RowPasses result_;
};

/// True for what is read from memory at a place that no value tells.
bool loads_anywhere(const Kernel& kernel, Slot slot) {
  const auto* load = std::get_if<kernel::Load>(&kernel.body[slot].operation);
  return load != nullptr && !load->guard && kernel.params[load->param].role == kernel::Param::Role::input;
}

}  // namespace

std::vector<Slot> RowPasses::shared_memory(const Kernel& kernel) const {
  std::vector<Slot> holder(kernel.body.size());
  std::vector<std::pair<Slot, size_t>> free_after;  // memory, and the last pass that needs what is in it
  for (size_t p = 0; p < passes.size(); ++p) {
    for (const Slot slot : passes[p].elements) {
      if (!kept[slot]) continue;
      const auto fits = [&](const auto& memory) {
        return memory.second <= p && kernel.body[memory.first].dtype == kernel.body[slot].dtype;
      };
      auto found = std::ranges::find_if(free_after, fits);
      if (found == free_after.end()) found = free_after.insert(found, {slot, 0});
      found->second = last_need[slot];
      holder[slot] = found->first;
    }
  }
  return holder;
}

int64_t RowPasses::most_kept_bytes(const Kernel& kernel) const {
  int64_t most = 0;
  std::vector<Slot> held;
  for (size_t p = 0; p < passes.size(); ++p) {
    std::erase_if(held, [&](Slot slot) { return last_need[slot] <= p; });
    for (const Slot slot : passes[p].elements) {
      if (kept[slot] && last_need[slot] > p) held.push_back(slot);
    }
    int64_t bytes = 0;
    for (const Slot slot : held) bytes += ir::bytes_of(kernel.body[slot].dtype);
    most = std::max(most, bytes);
  }
  return most;
}

int64_t RowPasses::bytes_loaded_later(const Kernel& kernel) const {
  int64_t bytes = 0;
  for (size_t p = 1; p < passes.size(); ++p) {
    for (const Slot slot : passes[p].elements) {
      if (loads_anywhere(kernel, slot)) bytes += ir::bytes_of(kernel.body[slot].dtype);
    }
  }
  return bytes;
}

void RowPasses::load_in_first(const Kernel& kernel) {
  for (size_t p = 1; p < passes.size(); ++p) {
    std::vector<Slot>& elements = passes[p].elements;
    const auto moved =
        std::ranges::stable_partition(elements, [&](Slot slot) { return !loads_anywhere(kernel, slot); });
    for (const Slot slot : moved) {
      const bool is_first = std::ranges::find(passes[0].elements, slot) == passes[0].elements.end();
      if (is_first) passes[0].elements.push_back(slot);
      last_need[slot] = std::max(last_need[slot], p);
      kept[slot] = true;
    }
    elements.erase(moved.begin(), moved.end());
  }
  std::ranges::sort(passes[0].elements);
}

RowPasses row_passes(const Kernel& kernel, const Operands& operands, Keep keep) {
  return Ordering(kernel, operands, keep).run();
}

}  // namespace sinter::codegen
