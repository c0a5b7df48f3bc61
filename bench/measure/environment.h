#pragma once

#include <c10/core/Device.h>

#include <nlohmann/json.hpp>

namespace sinter::bench {

/// What figures depend on besides the program: versions of LibTorch, CUDA and cuDNN, CPU, GPU, threads, and the modes
/// that change how fast eager is. CUDA's only for CUDA devices.
[[nodiscard]] nlohmann::json environment(c10::Device device);

}  // namespace sinter::bench
