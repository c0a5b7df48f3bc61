#include "scopes.h"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace sinter::test::fuzz {
namespace {

/// Makes `later` wait for what `earlier` was given so far.
void order(const c10::Stream& earlier, const c10::Stream& later) {
  c10::Event event(earlier.device_type());
  event.record(earlier);
  event.block(later);
}

}  // namespace

Autocast::Autocast(at::DeviceType device, at::ScalarType dtype)
    : device_(device),
      was_(at::autocast::is_autocast_enabled(device)),
      dtype_(at::autocast::get_autocast_dtype(device)) {
  at::autocast::set_autocast_enabled(device, true);
  at::autocast::set_autocast_dtype(device, dtype);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, was_);
  at::autocast::set_autocast_dtype(device_, dtype_);
}

OtherStream::OtherStream(at::Device device) : device_(device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  inner_ = guard.getStreamFromGlobalPool(device, /*isHighPriority=*/false);
  outer_ = guard.exchangeStream(*inner_);
  order(*outer_, *inner_);
}

OtherStream::~OtherStream() {
  if (!inner_) return;
  order(*inner_, *outer_);
  (void)c10::impl::VirtualGuardImpl(device_.type()).exchangeStream(*outer_);
}

Threads::Threads(int count) : before_(at::get_num_threads()) {
  if (count != before_) at::set_num_threads(count);
}

Threads::~Threads() {
  if (at::get_num_threads() != before_) at::set_num_threads(before_);
}

}  // namespace sinter::test::fuzz
