#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "frontend/command/target.h"

namespace sinter::command {

/// Runs a model on a GPU until calls are steady and traces one call of it, eager and compiled: "compiled" and "eager",
/// each an array of rows (docs/benchmarking.md, `kernel_table`), and "text", both for people. All null
/// where CUPTI cannot trace.
[[nodiscard]] nlohmann::json kernels_of_one_call(const TargetOptions& options, const Target& target);

/// What `sinter bench --kernels` prints below a row. `traced` is what kernels_of_one_call gave, or null on the CPU.
[[nodiscard]] std::string kernels_text(const nlohmann::json& row, const nlohmann::json& traced);

}  // namespace sinter::command
