#include "compiler/kernel/windows.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace sinter::kernel {
namespace {

using Stage = WindowStage;

constexpr int64_t fewest_rows = 32768;  ///< of windows side by side: one thread goes through several rows
constexpr int64_t farthest_lanes = 4;   ///< elements between neighbours of a strided window

/// True where outputs along an outer loop read elements of each other's windows: a step is shorter than the reach of
/// the taps, and these lie within the loop's own reach.
bool overlaps(const Kernel& kernel, const ir::Index& index, size_t outer, size_t taps) {
  if (!index.is_affine()) return false;
  const int64_t step = index.affine.strides[outer];
  const int64_t spread = index.affine.strides[taps];
  return step > 0 && spread > 0 && step < spread * kernel.extents[taps] && spread < step * kernel.extents[outer];
}

class Analysis {
 public:
  explicit Analysis(const Kernel& kernel)
      : kernel_(kernel),
        outer_(kernel.extents.size() - kernel.reduced),
        operands_(operands_of(kernel)),
        live_(live_slots(kernel, operands_)) {}

  std::optional<Windows> run() {
    const int64_t points = kernel_.row_points();
    if (kernel_.reduced == 0 || outer_ == 0 || points < 2 || points > most_window_points) return std::nullopt;
    result_.lanes = outer_ - 1;
    choose_loops();
    const bool beside = kernel_.reduced > 1 && kernel_.rows() >= fewest_rows;
    if (!(result_.slides || beside) || kernel_.extents[result_.taps] > most_window_taps) return std::nullopt;
    if (!assign_stages() || !stores_rows() || !reads_neighbours()) return std::nullopt;
    return std::move(result_);
  }

 private:
  /// The loops whose windows overlap in the shortest steps.
  void choose_loops() {
    result_.taps = kernel_.extents.size() - 1;
    int64_t shortest = 0;
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      const Load* load = live_[slot] ? memory_load(kernel_, kernel_.body[slot]) : nullptr;
      if (load == nullptr) continue;
      for (size_t outer = 0; outer < outer_; ++outer) {
        for (size_t taps = outer_; taps < kernel_.extents.size(); ++taps) {
          if (!overlaps(kernel_, load->index, outer, taps)) continue;
          result_.slides = true;
          const int64_t step = load->index.affine.strides[outer];
          const int64_t spread = load->index.affine.strides[taps];
          if (outer == result_.lanes || (result_.tile && step + spread >= shortest)) continue;
          shortest = step + spread;
          const int64_t unit = std::gcd(step, spread);
          result_.tile = outer;
          result_.taps = taps;
          result_.step = step / unit;
          result_.spread = spread / unit;
        }
      }
    }
  }

  bool assign_stages() {
    result_.stages.assign(kernel_.body.size(), Stage::once);
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (!live_[slot]) continue;
      const auto stage = stage_of(slot);
      if (!stage) return false;
      result_.stages[slot] = *stage;
    }
    return true;
  }

  [[nodiscard]] std::optional<Stage> stage_of(Slot slot) const {
    const Instruction& instruction = kernel_.body[slot];
    std::optional<Stage> stage = Stage::once;
    if (const Load* load = memory_load(kernel_, instruction)) {
      stage = stage_of(load->index);
    } else if (const auto* inside = std::get_if<Inside>(&instruction.operation)) {
      stage = stage_of(inside->index);
    }
    for (const Slot operand : operands_[slot]) {
      if (stage) stage = joined(*stage, result_.stages[operand]);
    }
    if (!stage) return std::nullopt;
    if (std::holds_alternative<Reduce>(instruction.operation)) {
      return *stage == Stage::output ? std::nullopt : std::optional(Stage::output);
    }
    const bool reads_pairs = memory_load(kernel_, instruction) != nullptr && *stage == Stage::pair;
    return reads_pairs ? std::nullopt : stage;
  }

  [[nodiscard]] std::optional<Stage> stage_of(const ir::Index& index) const {
    const bool by_output = result_.tile && depends_on(index, *result_.tile);
    const bool by_tap = depends_on(index, result_.taps);
    bool by_turn = false;
    for (size_t loop = outer_; loop < kernel_.extents.size(); ++loop) {
      by_turn = by_turn || (loop != result_.taps && depends_on(index, loop));
    }
    if ((by_tap || by_turn) && !index.is_affine()) return std::nullopt;
    if (!by_output) return by_tap ? alone() : by_turn ? Stage::turn : Stage::once;
    if (!by_tap && !by_turn) return Stage::output;
    const auto& strides = index.affine.strides;
    const bool slides = by_tap && strides[*result_.tile] * result_.spread == strides[result_.taps] * result_.step;
    return slides ? std::optional(Stage::position) : std::nullopt;
  }

  /// Without a tile, taps are the positions.
  [[nodiscard]] Stage alone() const { return result_.tile ? Stage::tap : Stage::position; }

  /// The stage of what depends on both.
  static std::optional<Stage> joined(Stage a, Stage b) {
    if (a > b) std::swap(a, b);
    if (a == Stage::once || a == b) return b;
    if (b == Stage::output) return std::nullopt;
    return a == Stage::tap && b == Stage::position ? Stage::pair : b;
  }

  /// Stores happen once a row, some of them to neighbours.
  [[nodiscard]] bool stores_rows() const {
    bool neighbours = false;
    for (const Store& store : kernel_.stores) {
      const Stage stage = result_.stages[store.value];
      if (varies_in_row(kernel_, store.index) || (stage != Stage::output && stage != Stage::once)) return false;
      const auto& affine = store.index.affine;
      neighbours = neighbours || (store.index.is_affine() && affine.strides[result_.lanes] == 1);
    }
    return neighbours;
  }

  /// What is read for every tap lies side by side along the lanes, or is the same for all of them.
  [[nodiscard]] bool reads_neighbours() const {
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      const Load* load = live_[slot] ? memory_load(kernel_, kernel_.body[slot]) : nullptr;
      if (load == nullptr || !varies_in_row(kernel_, load->index)) continue;
      const int64_t stride = load->index.affine.strides[result_.lanes];
      const bool image = result_.stages[slot] == Stage::position;
      if (stride < 0 || stride > (image ? farthest_lanes : 1)) return false;
    }
    return true;
  }

  const Kernel& kernel_;
  size_t outer_;
  Operands operands_;
  std::vector<bool> live_;
  Windows result_;
};

}  // namespace

std::optional<Windows> windows_of(const Kernel& kernel) {
  return has_places(kernel) ? std::nullopt : Analysis(kernel).run();
}

}  // namespace sinter::kernel
