#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace sinter::bench {

/// What one process is called: what was measured in it, or its program and its number.
[[nodiscard]] std::string name_of_process(const nlohmann::json& process);

/// A Chrome trace, which Perfetto opens, of what sinter::CompileTimes::json() tells of several processes: one row group
/// each, on one clock. Throws nlohmann::json::exception for another schema.
[[nodiscard]] std::string compile_trace(const nlohmann::json& processes);

}  // namespace sinter::bench
