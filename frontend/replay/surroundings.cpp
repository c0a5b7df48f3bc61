#include "frontend/replay/surroundings.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include "frontend/convert.h"

namespace sinter::frontend {

KernelSurroundings KernelSurroundings::current() {
  KernelSurroundings now{Modes::settings(), std::nullopt};
  if (const auto device = current_cuda_device()) {
    now.stream = c10::impl::VirtualGuardImpl(c10::kCUDA).getStream(*device);
  }
  return now;
}

}  // namespace sinter::frontend
