#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sinter::runtime {

/// For each of `names` the position of its partner among `others`: equal names are matched in order, as many as can be.
/// Takes time and memory with the product of both lengths; beyond 64 million, names are matched one behind the other.
[[nodiscard]] std::vector<std::optional<size_t>> match_names(std::span<const std::string> names,
                                                             std::span<const std::string> others);

}  // namespace sinter::runtime
