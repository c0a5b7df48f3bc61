#pragma once

#include <array>
#include <string_view>

namespace sinter {

/// Options that generated CUDA text is written for, beside the architecture; part of the kernel cache's key.
/// `--fmad=false`: a product and a sum that stand in two ATen operators are rounded twice, as eager rounds them. What
/// ATen rounds once says so with `fma`. `--minimal`: without textures and the runtime's functions, which takes NVRTC a
/// third less time.
inline constexpr std::array<std::string_view, 4> cuda_options{"--device-as-default-execution-space", "--std=c++17",
                                                              "--fmad=false", "--minimal"};

}  // namespace sinter
