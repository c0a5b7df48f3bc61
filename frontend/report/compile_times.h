#pragma once

#include <span>
#include <string>

#include "compiler/support/report.h"

namespace sinter::frontend {

/// Adds phases of one function to the process-wide table behind sinter::compile_times(). Thread-safe.
void add_compile_times(const std::string& function, std::span<const PhaseTime> phases);

}  // namespace sinter::frontend
