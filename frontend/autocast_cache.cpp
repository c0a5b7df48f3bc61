#include "frontend/autocast_cache.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

namespace sinter::frontend {
namespace {

bool autocast_is_on() {
  return at::autocast::is_autocast_enabled(at::kCPU) || at::autocast::is_autocast_enabled(at::kCUDA);
}

}  // namespace

AutocastCache::AutocastCache()
    : was_enabled_(at::autocast::is_autocast_cache_enabled()),
      began_inside_(at::GradMode::is_enabled() && autocast_is_on()) {
  const bool as_in_eager = at::GradMode::is_enabled() && !autocast_is_on();
  if (!as_in_eager) at::autocast::set_autocast_cache_enabled(false);
}

AutocastCache::~AutocastCache() { at::autocast::set_autocast_cache_enabled(was_enabled_); }

std::optional<GraphBreak> AutocastCache::break_of(const Trace& trace) const {
  const bool assigns = std::any_of(trace.gradients.begin(), trace.gradients.end(), [](const GradientSlot& slot) {
    return slot.read || slot.after == GradientSlot::After::assigned;
  });
  if (!was_enabled_ || !began_inside_ || !assigns) return std::nullopt;
  return GraphBreak{BreakCode::needs_gradient,
                    {},
                    {},
                    "takes gradients under autocast that was switched on outside, whose cache of cast weights goes "
                    "beyond the call",
                    "switch autocast on inside the compiled callable, around the forward pass"};
}

}  // namespace sinter::frontend
