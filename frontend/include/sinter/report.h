#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "compiler/support/report.h"

namespace sinter {

/// Prints Report::text().
std::ostream& operator<<(std::ostream& out, const Report& report);

/// Where compile time went, over every function compiled by this process.
struct CompileTimes {
  struct Row {
    std::string function;
    std::string phase;
    int64_t count = 0;  ///< how often the phase ran: once per compiled segment
    double seconds = 0;
  };
  std::vector<Row> rows;  ///< in the order in which function and phase were first seen

  [[nodiscard]] double total() const;
  [[nodiscard]] std::string text() const;  ///< a table: one line a phase, one column a function
};

std::ostream& operator<<(std::ostream& out, const CompileTimes& times);

/// Snapshot of the process-wide table. Thread-safe.
[[nodiscard]] CompileTimes compile_times();

}  // namespace sinter
