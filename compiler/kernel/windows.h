#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace sinter::kernel {

inline constexpr int64_t most_window_points = 128;  ///< of a window: one thread goes through them
inline constexpr int64_t most_window_taps = 32;     ///< of these along one loop, which is unrolled

/// How often a kernel of windows computes an instruction.
enum class WindowStage : uint8_t {
  once,      ///< for all outputs of a tile and all of their taps
  turn,      ///< for every turn of the other tap loops
  tap,       ///< and there for every tap
  position,  ///< or for every element that the windows of a tile cover
  pair,      ///< or for every tap of every output
  output,    ///< for every output
};

/// A kernel whose rows are small windows that lie beside each other or overlap, as those of pools and of depthwise
/// convolutions do: rows of few points, gone through once. A tile is some neighbouring outputs along one loop, whose
/// windows are shifted by `step` positions each; the taps of a window are `spread` positions apart.
struct Windows {
  size_t lanes = 0;            ///< the loop along which outputs are neighbours in memory
  std::optional<size_t> tile;  ///< the loop along which windows share most; nothing where none do
  size_t taps = 0;             ///< the reduced loop that runs along it
  int64_t step = 1;
  int64_t spread = 1;
  bool slides = false;              ///< windows overlap
  std::vector<WindowStage> stages;  ///< by slot; what no store needs is `once`
};

/// The kernel as windows; nothing for other rows: those with more points, that are gone through several times, that are
/// stored point by point, or whose neighbours in memory are not neighbours of the outputs.
[[nodiscard]] std::optional<Windows> windows_of(const Kernel& kernel);

}  // namespace sinter::kernel
