#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace sinter {

/// What compiling consists of, as tables show it, in the order in which it comes. "passes" stands for all phases of
/// passes together.
inline constexpr std::array<std::string_view, 9> compile_phases{"capture", "graph",   "passes", "codegen", "kernels",
                                                                "load",    "prepare", "record", "other"};

inline constexpr std::string_view prefix_of_passes = "pass ";

/// The name of the phase that a pass is: "pass fuse".
[[nodiscard]] inline std::string phase_of_pass(std::string_view pass) {
  return std::string(prefix_of_passes).append(pass);
}

/// The pass that a phase is; nothing where it is none.
[[nodiscard]] constexpr std::optional<std::string_view> pass_of(std::string_view phase) {
  if (!phase.starts_with(prefix_of_passes)) return std::nullopt;
  return phase.substr(prefix_of_passes.size());
}

[[nodiscard]] constexpr bool is_compile_phase(std::string_view phase) {
  return std::ranges::find(compile_phases, phase) != compile_phases.end();
}

}  // namespace sinter
