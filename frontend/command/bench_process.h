#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "frontend/command/commands.h"

namespace sinter::command {

/// Runs one measurement (bench_child) in a fresh process that keeps its kernels in `cache` (a folder, or "off");
/// nothing when it failed. Throws AlreadySaid when it was asked for something that cannot be, which the child has
/// explained.
[[nodiscard]] std::optional<nlohmann::json> measure(const TargetOptions& target, const std::string& mode,
                                                    const ChildOptions& child, const std::string& cache);

}  // namespace sinter::command
