#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "sinter/profile.h"

namespace sinter::frontend {

/// Measures a device: a copy of a block that its caches do not hold, and products of matrices of each of these dtypes
/// ("f16"; others than floats are left out). As the program runs them: with its threads, and with TF32 where that is
/// on. Draws no random numbers of the program's. Never throws: what fails is said in DeviceLimits::problem.
[[nodiscard]] DeviceLimits measure_limits(at::Device device, const std::vector<std::string>& dtypes);

/// Waits until a device has done what it was given. A call on the CPU has, when it returns.
void wait_for(at::Device device);

/// Dtypes of the products of these profiles, each once.
[[nodiscard]] std::vector<std::string> product_dtypes(const std::vector<ModeProfile>& profiles);

}  // namespace sinter::frontend
