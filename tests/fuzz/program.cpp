#include "program.h"

#include <algorithm>

namespace sinter::test::fuzz {
namespace {

bool has_effects(const Block& block) {
  return std::ranges::any_of(block.body, [](const Instruction& made) {
    return made.row->kind == Kind::host || made.row->control >= Control::every ||
           std::ranges::any_of(made.numbers, is_host_number) ||
           std::ranges::any_of(made.blocks, [](const Block& inner) { return has_effects(inner); });
  });
}

}  // namespace

bool has_effects(const Program& program) {
  return has_effects(program.body) ||
         std::ranges::any_of(program.calls, [](const Call& call) { return call.before >= Event::swap_state; });
}

std::optional<std::pair<size_t, size_t>> alike(const std::vector<Source>& state) {
  for (size_t i = 0; i < state.size(); ++i) {
    for (size_t j = i + 1; j < state.size(); ++j) {
      if (state[i].dtype == state[j].dtype && state[i].sizes == state[j].sizes) return std::pair{i, j};
    }
  }
  return std::nullopt;
}

}  // namespace sinter::test::fuzz
