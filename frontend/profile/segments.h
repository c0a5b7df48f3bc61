#pragma once

#include <vector>

#include "frontend/profile/module_table.h"
#include "sinter/profile.h"
#include "sinter/report.h"

namespace sinter::frontend {

/// The segments of a compiled program that ran, with what they hold at their fullest moment. Modules that the report
/// names and the table does not have are added to it.
[[nodiscard]] std::vector<ProfiledSegment> segments_of(const Report& report, ModuleTable& modules);

}  // namespace sinter::frontend
