#pragma once

#include <span>
#include <vector>

#include "compiler/ir/reading.h"
#include "frontend/capture.h"
#include "frontend/frame_torch.h"
#include "sinter/detail/flatten.h"

namespace sinter::frontend {

/// How each tensor of a result comes out of a run, so that identity and sharing are those of the captured call: an
/// argument that is returned is the caller's own tensor, a view of one is a view of it, and what was fresh is fresh.
class OutputRules {
 public:
  /// Inputs of the plan from `own` on are tensors that the call itself made.
  OutputRules(const Trace& captured, const Plan& plan, uint32_t own = UINT32_MAX);

  /// Appends the results of a finished run.
  void collect(TorchFrame& frame, const detail::Flat& arguments, std::span<const StateSlot> states,
               detail::Replay& replay) const;

 private:
  enum class How : uint8_t { argument, state, argument_view, state_view, buffer, copy, same, alias };
  struct Rule {
    How how = How::buffer;
    uint32_t index = 0;  ///< of the argument, state, buffer or earlier result
    std::vector<int64_t> sizes{}, strides{};
    int64_t offset = 0;
    ir::Reading reading{};  ///< a recorded graph hands memory on, not bits
  };

  [[nodiscard]] static Rule rule_for(const Trace& captured, size_t output);
  [[nodiscard]] static Rule rule_for(const Trace& captured, const Plan& plan, size_t output, uint32_t own);
  std::vector<Rule> rules_;
};

}  // namespace sinter::frontend
