#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

namespace sinter {

/// An index into one particular table. Ids of different tables do not convert into each other.
template <class Tag>
struct StrongId {
  static constexpr uint32_t none = std::numeric_limits<uint32_t>::max();

  uint32_t index = none;

  [[nodiscard]] constexpr bool valid() const { return index != none; }
  constexpr auto operator<=>(const StrongId&) const = default;
};

}  // namespace sinter

template <class Tag>
struct std::hash<sinter::StrongId<Tag>> {
  size_t operator()(sinter::StrongId<Tag> id) const noexcept { return std::hash<uint32_t>{}(id.index); }
};
