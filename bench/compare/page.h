#pragma once

#include <string>
#include <string_view>

#include "bench/compare/join.h"

namespace sinter::bench {

/// One HTML page that needs nothing but itself: plots, all numbers, warnings, rows without a partner, machines. It has
/// no script and its security policy allows none; texts of result files are shown literally.
[[nodiscard]] std::string to_html(const Comparison& comparison);

/// page.html and page.css of this folder, as built in.
[[nodiscard]] std::string_view page_template();
[[nodiscard]] std::string_view page_style();

}  // namespace sinter::bench
