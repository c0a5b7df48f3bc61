#include "compiler/kernel/registers.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace sinter::kernel {
namespace {

constexpr int64_t register_bytes = 4;
constexpr int64_t registers_of_address = 2;
/// Points of a row that a warp holds in vectors of four.
constexpr int64_t longest_short_row = 128;

/// By slot: the last slot that reads its value. What is stored is stored when it is known.
std::vector<size_t> last_reads(const Operands& operands) {
  std::vector<size_t> last(operands.size());
  for (size_t slot = 0; slot < operands.size(); ++slot) {
    last[slot] = slot;
    for (const Slot operand : operands[slot]) last[operand] = slot;
  }
  return last;
}

int64_t addresses(const Kernel& kernel) {
  return registers_of_address *
         std::ranges::count_if(kernel.params, [](const Param& param) { return param.role == Param::Role::input; });
}

}  // namespace

bool has_short_rows(const Kernel& kernel) {
  const auto points = static_cast<uint64_t>(kernel.row_points());
  return kernel.reduced > 0 && kernel.row_points() <= longest_short_row && std::has_single_bit(points) &&
         kernel.group_rows() == 1 && !kernel.generic_sizes && !has_guards(kernel) && !has_places(kernel) &&
         !runs_across_rows(kernel);
}

int64_t registers_in_order(const Kernel& kernel, int64_t width) {
  const Operands operands = operands_of(kernel);
  const std::vector<bool> live = live_slots(kernel, operands);
  const std::vector<size_t> last = last_reads(operands);
  const std::vector<Level> level = levels(kernel);
  std::vector<int64_t> freed(kernel.body.size(), 0);  // by slot: registers of what it reads last
  int64_t held = 0;
  int64_t most = 0;
  for (Slot slot = 0; slot < kernel.body.size(); ++slot) {
    const bool is_number = std::holds_alternative<Immediate>(kernel.body[slot].operation);
    if (live[slot] && !is_number) {
      const int64_t words = std::max<int64_t>(1, ir::bytes_of(kernel.body[slot].dtype) / register_bytes);
      const int64_t needed = words * (level[slot] == Level::row ? 1 : width);
      held += needed;
      freed[last[slot]] += needed;
    }
    most = std::max(most, held);
    held -= freed[slot];
  }
  return most + addresses(kernel);
}

}  // namespace sinter::kernel
