#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sinter::bench {

struct Bar {
  std::string name;
  std::string classes;
  double length = 0;  ///< 0 to 1
  std::string value;
};

/// Name above, bar and value below, one row each. `what` says what they show; `reference` is where a dashed line of
/// eager stands, 0 to 1.
[[nodiscard]] std::string bar_chart(const std::string& what, const std::vector<Bar>& bars,
                                    std::optional<double> reference = std::nullopt);

}  // namespace sinter::bench
