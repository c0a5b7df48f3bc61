#pragma once

#include <ATen/core/Generator.h>

#include <memory>
#include <optional>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/support/device_info.h"
#include "compiler/support/report.h"
#include "frontend/execute/frame_torch.h"
#include "runtime/host.h"

namespace sinter::frontend {

/// LibTorch, as the runtime asks for it. One per entry. Thread-safe.
class TorchHost final : public runtime::Host {
 public:
  /// Throws InternalError when the plan calls an operator that does not exist.
  TorchHost(std::shared_ptr<const Plan> plan, const std::vector<c10::IValue>& opaques);

  [[nodiscard]] std::unique_ptr<TorchFrame> make_torch_frame() const;

  /// How the plan's calls that had a choice were computed by the last runs; equal ones once.
  [[nodiscard]] std::vector<ChoiceRecord> choices() const;

  /// `plan` must be the plan this host was made for.
  [[nodiscard]] std::unique_ptr<runtime::Frame> make_frame(const Plan& plan) override;
  [[nodiscard]] void* current_stream(ir::Device device) override;
  void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) override;
  [[nodiscard]] std::unique_ptr<Recording> record(ir::Device device,
                                                  const std::optional<PoolRequest>& request) override;
  void release_pool(ir::Device device, uint64_t pool) override;
  [[nodiscard]] std::unique_ptr<Draws> draws(ir::Device device) override;

 private:
  std::shared_ptr<const FrameLayout> layout_;
  std::vector<at::Generator> generators_;  ///< that calls name
};

/// The device to be current while a plan is bound and runs; nothing for the CPU.
[[nodiscard]] std::optional<c10::Device> device_to_set(const Plan& plan);

/// What the compiler must know of the device of a graph: of libraries, what the graph's calls need. The CUDA driver is
/// not touched for the CPU.
[[nodiscard]] DeviceInfo device_info(const ir::Graph& graph);

}  // namespace sinter::frontend
