#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "frontend/command/target.h"

namespace sinter::command {

/// Runs one measurement (bench_child) in a fresh process that keeps its kernels in `cache` (a folder, or "off");
/// nothing when it failed. `budget`: seconds of timing per measure. Throws AlreadySaid when it was asked for something
/// that cannot be, which the child has explained.
[[nodiscard]] std::optional<nlohmann::json> measure(const TargetOptions& target, const std::string& mode,
                                                    const std::string& kind, double budget, const std::string& cache);

}  // namespace sinter::command
