#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "frontend/command/target.h"

/// One row of `sinter bench`, from what its processes measured.
namespace sinter::command {

/// Seconds of first calls, each in a fresh process.
struct Starts {
  std::vector<double> cold_s;  ///< compiled, from an empty kernel cache
  std::vector<double> warm_s;  ///< compiled, with kernels in the cache; may be empty
  std::vector<double> eager_cold_s;
};

/// The row (docs/benchmarking.md). `compiled` and `eager` are what bench_child wrote for those kinds.
[[nodiscard]] nlohmann::json make_row(const TargetOptions& target, const std::string& mode,
                                      const nlohmann::json& compiled, const nlohmann::json& eager,
                                      const Starts& starts);

/// The row as a line of a table, and the table's head.
[[nodiscard]] std::string row_line(const nlohmann::json& row);
[[nodiscard]] std::string row_header();

/// What its losses say, as a line below the row; empty where it has none.
[[nodiscard]] std::string losses_line(const nlohmann::json& row);

}  // namespace sinter::command
