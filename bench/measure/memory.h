#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace sinter::bench {

/// Bytes LibTorch's allocator handed out at most during `call`, beyond what was in use before it.
[[nodiscard]] int64_t peak_bytes(at::Device device, const std::function<void()>& call);

/// Bytes of the cache a benchmark's inputs must not stay in: the GPU's L2, or the CPU's last level.
[[nodiscard]] int64_t cache_bytes(at::Device device);

}  // namespace sinter::bench
