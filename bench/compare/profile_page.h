#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace sinter::bench {

/// One HTML page about what `sinter profile --json` writes (docs/profiling.md): waits, phases, lines, memory, modules
/// and operators of each mode. Needs nothing but itself; texts of the profile are shown literally. Throws
/// nlohmann::json::exception for a file of another schema.
[[nodiscard]] std::string profile_page(const nlohmann::json& profile);

}  // namespace sinter::bench
