#pragma once

#include <string>
#include <vector>

#include "sinter/compile_times.h"

namespace sinter::frontend {

/// The name of this program's file, without folders.
[[nodiscard]] std::string program_name();

/// Asks for what SINTER_COMPILE_TIMES says: the compile times of this process as PROGRAM-PROCESS.json in that folder,
/// written when it exits. A forked child writes none. False where the variable is not set.
bool write_compile_times_at_exit();

/// Reads CompileTimes::json(), or an array of such. `from` names it in messages. Throws UserError for anything else.
[[nodiscard]] std::vector<CompileTimes> read_compile_times(const std::string& json, const std::string& from);

}  // namespace sinter::frontend
