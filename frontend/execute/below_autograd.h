#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace sinter::frontend {

/// While it lives, operators of the calling thread run below autograd and autocast.
class BelowAutograd {
 public:
  /// `for_backward`: kernels that make more in grad mode are asked for what backward will need.
  explicit BelowAutograd(bool for_backward = false)
      : autograd_(c10::autograd_dispatch_keyset_with_ADInplaceOrView),
        autocast_(c10::autocast_dispatch_keyset),
        grad_mode_(for_backward) {}

 private:
  c10::impl::ExcludeDispatchKeyGuard autograd_;
  c10::impl::ExcludeDispatchKeyGuard autocast_;
  c10::AutoGradMode grad_mode_;
};

}  // namespace sinter::frontend
