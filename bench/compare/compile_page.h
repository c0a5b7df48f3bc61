#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace sinter::bench {

/// One HTML page about what sinter::CompileTimes::json() tells of several processes: phases, functions, entries, passes
/// and kernels, and after how many calls compiling has paid where that was measured. Needs nothing but itself; texts
/// are shown literally. Throws nlohmann::json::exception for another schema.
[[nodiscard]] std::string compile_page(const nlohmann::json& processes);

}  // namespace sinter::bench
