#include "runtime/match_names.h"

#include <algorithm>
#include <cstdint>

namespace sinter::runtime {
namespace {

using Names = std::span<const std::string>;
using Partners = std::vector<std::optional<size_t>>;

constexpr size_t largest_table = size_t{64} << 20;

/// Each name with the next one that is equal, as long as there is one.
Partners one_behind_the_other(Names names, Names others) {
  Partners partners(names.size());
  size_t next = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto found = std::find(others.begin() + static_cast<std::ptrdiff_t>(next), others.end(), names[i]);
    if (found == others.end()) continue;
    partners[i] = static_cast<size_t>(found - others.begin());
    next = *partners[i] + 1;
  }
  return partners;
}

}  // namespace

Partners match_names(Names names, Names others) {
  const size_t rows = names.size();
  const size_t columns = others.size();
  if (columns != 0 && rows > largest_table / columns) return one_behind_the_other(names, others);
  // The longest common subsequence: longest[i][j] is that of what follows i and j.
  std::vector<std::vector<uint32_t>> longest(rows + 1, std::vector<uint32_t>(columns + 1));
  for (size_t i = rows; i-- > 0;) {
    for (size_t j = columns; j-- > 0;) {
      longest[i][j] =
          names[i] == others[j] ? longest[i + 1][j + 1] + 1 : std::max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  Partners partners(rows);
  for (size_t i = 0, j = 0; i < rows && j < columns;) {
    if (names[i] == others[j]) {
      partners[i++] = j++;
    } else if (longest[i + 1][j] >= longest[i][j + 1]) {
      ++i;
    } else {
      ++j;
    }
  }
  return partners;
}

}  // namespace sinter::runtime
