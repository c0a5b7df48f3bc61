#pragma once

#include <iosfwd>

#include "compiler/support/report.h"
#include "sinter/compile_times.h"

namespace sinter {

/// Prints Report::text().
std::ostream& operator<<(std::ostream& out, const Report& report);

}  // namespace sinter
