#pragma once

#include "bench/compare/join.h"
#include "bench/compare/svg.h"

namespace sinter::bench {

/// How a contender looks in every plot: classes of page.css and a shape. Modes of one contender share a hue.
struct Look {
  std::string classes;
  size_t shape = 0;
};

/// Looks of all contenders of the cases, Sinter's first.
class Looks {
 public:
  explicit Looks(const Comparison& comparison);

  struct Named {
    std::string name;
    Look look;
  };
  [[nodiscard]] const std::vector<Named>& all() const { return all_; }
  /// Of a contender that appears in the comparison.
  [[nodiscard]] const Look& of(const std::string& name) const;

 private:
  std::vector<Named> all_;
};

/// The largest speed-up of all cases, at least 1: the end of every speed-up axis.
[[nodiscard]] double largest_speedup(const Comparison& comparison);

/// Bars of one case: how many times eager's speed, on an axis that ends at `largest`.
[[nodiscard]] std::string speedup_bars(const Case& one, const Looks& looks, double largest);

/// Bars of one case: peak memory of a call, eager's first. Empty where no contender measured it.
[[nodiscard]] std::string memory_bars(const Case& one, const Looks& looks);

/// Total time after n calls, eager's line among the contenders'.
[[nodiscard]] std::string break_even_curves(const Case& one, const Looks& looks);

/// Compile time against steady-state gain, all cases; a case's number stands beside its marks where there is room.
[[nodiscard]] std::string gain_scatter(const Comparison& comparison, const Looks& looks, double width, double height,
                                       const std::string& classes);

}  // namespace sinter::bench
