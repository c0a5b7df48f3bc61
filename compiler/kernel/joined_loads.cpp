#include "compiler/kernel/joined_loads.h"

#include <algorithm>

#include "compiler/ir/index_simplify.h"

namespace sinter::kernel {
namespace {

/// How many instructions and stores read each slot.
std::vector<int> readers(const Kernel& kernel) {
  std::vector<int> count(kernel.body.size(), 0);
  for (const auto& operands : operands_of(kernel)) {
    for (const Slot operand : operands) ++count[operand];
  }
  for (const Store& store : kernel.stores) ++count[store.value];
  return count;
}

bool descends(const ir::Affine& affine) {
  return affine.offset < 0 || std::ranges::any_of(affine.strides, [](int64_t stride) { return stride < 0; });
}

/// True where the index is in [0, end) at every point.
bool stays_below(const ir::Index& index, const std::vector<int64_t>& extents, int64_t end) {
  if (descends(index.affine)) return false;
  int64_t value = ir::largest(index.affine, extents);
  for (const ir::QuasiTerm& term : index.terms) {
    if (term.scale < 0 || descends(term.inner)) return false;
    const int64_t quotient = ir::largest(term.inner, extents) / term.divisor;
    value += term.scale * (term.modulus == 0 ? quotient : std::min(quotient, term.modulus - 1));
  }
  return value < end;
}

class Finder {
 public:
  explicit Finder(const Kernel& kernel)
      : kernel_(kernel), where_(ir::op_named("where")), readers_(readers(kernel)), seen_(kernel.body.size(), false) {}

  std::vector<JoinedLoads> run() {
    std::vector<JoinedLoads> found;
    for (auto slot = static_cast<Slot>(kernel_.body.size()); slot-- > 0;) {
      auto join = seen_[slot] ? std::nullopt : chain_from(slot);
      if (join && one_at_every_point(*join)) found.push_back(*std::move(join));
    }
    std::ranges::reverse(found);
    return found;
  }

 private:
  /// where(guard, load, where(guard, load, ... load))
  std::optional<JoinedLoads> chain_from(Slot slot) {
    JoinedLoads join;
    join.result = slot;
    const Compute* choice = choice_at(slot);
    if (choice == nullptr) return std::nullopt;
    while (choice != nullptr) {
      const Slot load = choice->operands[1];
      if (!is_part(load) || guard_of(load) != choice->operands[0]) return std::nullopt;
      join.loads.push_back(load);
      slot = choice->operands[2];
      choice = readers_[slot] == 1 ? choice_at(slot) : nullptr;
      if (choice == nullptr) continue;
      join.choices.push_back(slot);
      seen_[slot] = true;
    }
    if (!is_part(slot)) return std::nullopt;
    join.loads.push_back(slot);
    return join;
  }

  [[nodiscard]] const Compute* choice_at(Slot slot) const {
    const auto* compute = std::get_if<Compute>(&kernel_.body[slot].operation);
    return compute != nullptr && compute->op == where_ ? compute : nullptr;
  }

  [[nodiscard]] std::optional<Slot> guard_of(Slot slot) const {
    const Load* load = memory_load(kernel_, kernel_.body[slot]);
    return load == nullptr ? std::nullopt : load->guard;
  }

  [[nodiscard]] bool is_part(Slot slot) const { return readers_[slot] == 1 && guard_of(slot).has_value(); }

  /// True where the guards ask for one index in ranges that lie side by side and hold all its values.
  [[nodiscard]] bool one_at_every_point(const JoinedLoads& join) const {
    std::vector<const Inside*> ranges;
    for (const Slot load : join.loads) {
      ranges.push_back(std::get_if<Inside>(&kernel_.body[*guard_of(load)].operation));
      if (ranges.back() == nullptr || ranges.back()->index != ranges.front()->index) return false;
    }
    std::ranges::sort(ranges, {}, &Inside::begin);
    int64_t end = 0;
    for (const Inside* range : ranges) {
      if (range->begin != end) return false;
      end = range->end;
    }
    return stays_below(ranges.front()->index, kernel_.extents, end);
  }

  const Kernel& kernel_;
  const ir::OpId where_;
  const std::vector<int> readers_;
  std::vector<bool> seen_;  ///< choices of a chain that was looked at
};

}  // namespace

std::vector<JoinedLoads> joined_loads(const Kernel& kernel) {
  return has_guards(kernel) ? Finder(kernel).run() : std::vector<JoinedLoads>{};
}

}  // namespace sinter::kernel
