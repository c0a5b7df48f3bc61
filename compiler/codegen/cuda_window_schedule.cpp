#include "compiler/codegen/cuda_window_schedule.h"

#include <algorithm>

#include "compiler/codegen/cuda_guards.h"
#include "compiler/codegen/cuda_lanes.h"
#include "compiler/support/ceil_div.h"

namespace sinter::codegen {
namespace {

using kernel::Kernel;
using kernel::Slot;
using Stage = kernel::WindowStage;

constexpr int64_t most_accumulators = 32;    ///< of one thread, in registers
constexpr int64_t most_weights = 32;         ///< beside them
constexpr int64_t threads_of_windows = 512;  ///< of each multiprocessor
constexpr int64_t fewest_blocks = 2;         ///< of each multiprocessor
constexpr uint32_t smallest_block = 64;
constexpr int64_t shortest_run = 64;  ///< bytes that neighbouring threads read together
constexpr double good_enough = 1.03;  ///< of the cost of the best tile: smaller ones have more threads

class Scheduling {
 public:
  Scheduling(const Kernel& kernel, const DeviceInfo& device, kernel::Windows windows)
      : kernel_(kernel), turned_(lanes_last(kernel, windows.lanes)), device_(device) {
    plan_.windows = std::move(windows);
  }

  WindowSchedule run() {
    choose_width();
    choose_tile();
    while (plan_.width > 1 && threads() < int64_t{device_.multiprocessors} * threads_of_windows / 4) plan_.width /= 2;
    classify();
    deal();
    plan_.wide = needs_wide_index(kernel_, plan_.threads() + plan_.block);
    return std::move(plan_);
  }

 private:
  [[nodiscard]] bool has(Stage stage) const {
    return std::ranges::find(plan_.windows.stages, stage) != plan_.windows.stages.end();
  }
  [[nodiscard]] int64_t taps() const { return kernel_.extents[plan_.windows.taps]; }
  [[nodiscard]] int64_t tiled() const { return plan_.windows.tile ? kernel_.extents[*plan_.windows.tile] : 1; }
  [[nodiscard]] int64_t positions(int64_t outputs) const {
    return (outputs - 1) * plan_.windows.step + (taps() - 1) * plan_.windows.spread + 1;
  }
  [[nodiscard]] int64_t threads() const {
    return kernel_.rows() / tiled() / plan_.width * ceil_div(tiled(), plan_.outputs);
  }

  /// Bytes of the widest element that streams.
  [[nodiscard]] int64_t streamed_bytes() const {
    int64_t widest = 1;
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      const auto* load = memory_load(kernel_, kernel_.body[slot]);
      const Stage stage = plan_.windows.stages[slot];
      if (load != nullptr && (stage == Stage::position || stage == Stage::output)) {
        widest = std::max(widest, ir::bytes_of(kernel_.params[load->param].dtype));
      }
    }
    for (const auto& store : kernel_.stores) {
      widest = std::max(widest, ir::bytes_of(kernel_.params[store.param].dtype));
    }
    return widest;
  }

  void choose_width() {
    plan_.width = std::max<int64_t>(1, access_bytes / streamed_bytes());
    while (has(Stage::tap) && plan_.width > 1 && plan_.width * taps() > most_weights) plan_.width /= 2;
    while (plan_.width > 1 && (turned_.extents.back() % plan_.width != 0 || !takes_vectors())) plan_.width /= 2;
  }

  /// True where lanes agree on guards, and what is read for taps comes in vectors.
  [[nodiscard]] bool takes_vectors() const {
    const std::vector<bool> shared = shared_guards(turned_, plan_.width, false);
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      if (std::holds_alternative<kernel::Inside>(kernel_.body[slot].operation) && !shared[slot]) return false;
      const auto* load = memory_load(turned_, turned_.body[slot]);
      const Stage stage = plan_.windows.stages[slot];
      if (load == nullptr || stage == Stage::once || stage == Stage::output) continue;
      const auto kind = access(load->param, load->index).kind;
      if (kind != LaneAccess::Kind::vector && kind != LaneAccess::Kind::uniform) return false;
    }
    return true;
  }

  /// `index` has the lanes last.
  [[nodiscard]] LaneAccess access(uint32_t param, const ir::Index& index) const {
    return access_along({&kernel_.params[param], &index}, turned_, plan_.width);
  }

  /// Instructions of one tile and turn.
  [[nodiscard]] int64_t cost(int64_t outputs) const {
    constexpr int64_t of_load = 3;
    const int64_t of_elements = std::ranges::count(plan_.windows.stages, Stage::position) * plan_.width;
    const int64_t weights = has(Stage::tap) ? taps() : 0;
    return positions(outputs) * (of_load + of_elements) + weights + taps() * outputs * plan_.width;
  }

  /// The smallest tile that computes all outputs with about as few instructions as the best one.
  void choose_tile() {
    const int64_t most = std::clamp<int64_t>(most_accumulators / plan_.width, 1, tiled());
    const auto total = [&](int64_t outputs) { return static_cast<double>(ceil_div(tiled(), outputs) * cost(outputs)); };
    double best = total(1);
    for (int64_t outputs = 2; outputs <= most; ++outputs) best = std::min(best, total(outputs));
    while (total(plan_.outputs) > best * good_enough) ++plan_.outputs;
    while (plan_.outputs > 1 && threads() < int64_t{device_.multiprocessors} * threads_of_windows) {
      plan_.outputs = ceil_div(plan_.outputs, 2);
    }
    plan_.positions = positions(plan_.outputs);
    plan_.partial = tiled() % plan_.outputs != 0;
  }

  void classify() {
    plan_.loads.assign(kernel_.body.size(), {.kind = LaneAccess::Kind::scalar});
    for (Slot slot = 0; slot < kernel_.body.size(); ++slot) {
      const auto* load = memory_load(turned_, turned_.body[slot]);
      if (load != nullptr) plan_.loads[slot] = access(load->param, load->index);
    }
    for (const auto& store : turned_.stores) plan_.stores.push_back(access(store.param, store.index));
  }

  /// Vectors along the lanes that neighbouring threads take: those of a cache line, or all where they do not divide.
  [[nodiscard]] int64_t run_of_lanes(int64_t vectors) const {
    const int64_t bytes = plan_.width * streamed_bytes();
    for (int64_t run = std::min(vectors, line_bytes / bytes); run * bytes >= shortest_run; --run) {
      if (vectors % run == 0) return run;
    }
    return vectors;
  }

  /// True for a loop along which windows overlap.
  [[nodiscard]] bool slides_along(size_t loop) const {
    return std::ranges::any_of(kernel_.body, [&](const kernel::Instruction& instruction) {
      const auto* load = memory_load(kernel_, instruction);
      if (load == nullptr || !load->index.is_affine()) return false;
      const auto& strides = load->index.affine.strides;
      for (size_t taps = kernel_.extents.size() - kernel_.reduced; taps < strides.size(); ++taps) {
        if (strides[taps] > 0 && strides[loop] > 0 && strides[loop] < strides[taps] * kernel_.extents[taps])
          return true;
      }
      return false;
    });
  }

  /// Neighbouring threads share a line; then come those whose windows overlap, so that a block reads them once.
  void deal() {
    const size_t lanes = plan_.windows.lanes;
    const int64_t vectors = kernel_.extents[lanes] / plan_.width;
    const int64_t run = run_of_lanes(vectors);
    plan_.digits.push_back({lanes, run, plan_.width});
    if (plan_.windows.tile) {
      plan_.digits.push_back({*plan_.windows.tile, ceil_div(tiled(), plan_.outputs), plan_.outputs});
    }
    for (const bool sliding : {true, false}) {
      for (size_t loop = lanes; loop-- > 0;) {
        if (loop == plan_.windows.tile || slides_along(loop) != sliding) continue;
        plan_.digits.push_back({loop, kernel_.extents[loop], 1});
      }
      if (sliding) plan_.digits.push_back({lanes, vectors / run, plan_.width * run});
    }
    std::erase_if(plan_.digits, [](const auto& digit) { return digit.count == 1; });
    const int64_t all = plan_.threads();
    while (plan_.block > smallest_block && all < int64_t{plan_.block} * fewest_blocks * device_.multiprocessors) {
      plan_.block /= 2;
    }
    plan_.grid = static_cast<uint32_t>(ceil_div(all, plan_.block));
  }

  const Kernel& kernel_;
  const Kernel turned_;
  const DeviceInfo& device_;
  WindowSchedule plan_;
};

}  // namespace

int64_t WindowSchedule::threads() const {
  int64_t count = 1;
  for (const Digit& digit : digits) count *= digit.count;
  return count;
}

std::optional<WindowSchedule> window_schedule(const Kernel& kernel, const DeviceInfo& device) {
  if (kernel.generic_sizes) return std::nullopt;
  auto windows = kernel::windows_of(kernel);
  if (!windows) return std::nullopt;
  return Scheduling(kernel, device, *std::move(windows)).run();
}

}  // namespace sinter::codegen
