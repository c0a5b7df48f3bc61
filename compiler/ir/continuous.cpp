#include "compiler/ir/continuous.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace sinter::ir {
namespace {

constexpr auto discontinuous =
    std::to_array<std::string_view>({"ceil", "copysign", "floor", "fmod", "nextafter", "round", "trunc"});

}  // namespace

bool is_continuous(OpId op) {
  const OpRow& entry = row(op);
  if (entry.rule == TypeRule::compare || entry.rule == TypeRule::predicate) return false;
  return std::ranges::find(discontinuous, entry.name) == discontinuous.end();
}

}  // namespace sinter::ir
