#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "frontend/execute/frame_pool.h"
#include "frontend/trace/path_graph.h"
#include "frontend/trace/tensor_table.h"
#include "runtime/graph_parts.h"

namespace sinter::frontend {

class CompiledPath;

/// When a run of a compiled segment may do what: an input is there once a step has taken it, and an operator that may
/// refuse its data is not called before the program has called it. Empty where it pays for no segment of so few steps,
/// and where numbers come with every call.
[[nodiscard]] runtime::Arrivals arrivals_of(const Plan& plan, std::span<const PathInput> inputs,
                                            std::span<const PathNode* const> steps);

/// A run of a compiled segment that the device begins while the program is still calling the operators of the segment.
/// What the program then does not ask for was done in vain: nothing that was there before is written. Used by one
/// thread at a time.
class EarlyRun {
 public:
  explicit EarlyRun(std::shared_ptr<CompiledPath> path);
  ~EarlyRun();
  EarlyRun(const EarlyRun&) = delete;
  EarlyRun& operator=(const EarlyRun&) = delete;

  /// Steps after which there is something to start; none where there is nothing any more.
  [[nodiscard]] std::optional<uint32_t> due() const { return due_; }
  /// Starts what so many steps allow. `table` knows the inputs that they took. Throws what allocating and launching
  /// throw; the run is over then.
  void start(const TensorTable& table, uint32_t steps);

  [[nodiscard]] const std::shared_ptr<CompiledPath>& path() const { return path_; }
  [[nodiscard]] size_t started() const { return started_; }
  [[nodiscard]] TorchFrame& frame() const { return *frame_; }
  /// Its parts belong to a call of CompiledPath::run from here on.
  void hand_over() { owns_parts_ = false; }

 private:
  const std::shared_ptr<CompiledPath> path_;
  const FrameLease frame_;
  std::optional<uint32_t> due_;
  uint32_t bound_ = 0;  ///< inputs
  size_t started_ = 0;  ///< parts
  bool owns_parts_ = false;
};

}  // namespace sinter::frontend
