#pragma once

#include <string>

#include "bench/compare/join.h"

namespace sinter::bench {

/// One HTML page that needs nothing but itself: plots, all numbers, warnings, rows without a partner, machines. It has
/// no script and its security policy allows none; texts of result files are shown literally.
[[nodiscard]] std::string to_html(const Comparison& comparison);

}  // namespace sinter::bench
