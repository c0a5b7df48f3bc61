#pragma once

#include <span>
#include <vector>

#include "frontend/profile/module_table.h"
#include "frontend/profile/operator_log.h"
#include "sinter/profile.h"

namespace sinter::frontend {

/// Says of every logged operator what phase, module and line of forward code it belongs to. Launches and times of a
/// device are left at 0. Times are since `origin`, nanoseconds of the log's clock. Modules that operators name and the
/// table does not have are added to it.
[[nodiscard]] std::vector<ProfiledOperator> attribute(ModuleTable& modules, std::span<const LoggedOperator> log,
                                                      int64_t origin);

}  // namespace sinter::frontend
