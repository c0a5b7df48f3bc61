#include "frontend/replay/surroundings.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "frontend/torch/convert.h"

namespace sinter::frontend {
namespace {

std::optional<c10::Stream> current_stream() {
  const auto device = current_cuda_device();
  if (!device) return std::nullopt;
  return c10::impl::VirtualGuardImpl(c10::kCUDA).getStream(*device);
}

}  // namespace

KernelSurroundings KernelSurroundings::current() { return {Modes::settings(), current_stream()}; }

bool KernelSurroundings::are_current(SettingSet looked_at) const {
  return stream == current_stream() && settings.has_current(looked_at);
}

SurroundingsGuard::SurroundingsGuard(const KernelSurroundings& surroundings, bool settings_matter) {
  if (settings_matter) {
    const Modes now = Modes::settings();
    if (now != surroundings.settings) settings_ = now;
  }
  if (settings_) surroundings.settings.apply_settings();
  if (!surroundings.stream) return;
  const auto now = current_stream();
  if (now == surroundings.stream) return;
  work_ = surroundings.stream;
  waiting_ = now;
  stream_.reset_stream(*work_);
}

SurroundingsGuard::~SurroundingsGuard() {
  if (settings_) settings_->apply_settings();
  if (!waiting_) return;
  try {
    c10::Event done(c10::kCUDA);
    done.record(*work_);
    done.block(*waiting_);
  } catch (const c10::Error&) {  // the device has failed, and refuses whatever comes next
  }
}

}  // namespace sinter::frontend
