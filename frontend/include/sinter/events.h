#pragma once

#include <iosfwd>
#include <string>
#include <variant>
#include <vector>

#include "compiler/support/errors.h"
#include "compiler/support/report.h"

namespace sinter {

/// A call did something that was not recorded, and was recorded beside it.
struct Recompilation {
  std::vector<GuardMiss> because;  ///< the operator that differed, what it was, what it is
};

/// What Options::on_event is told.
struct Event {
  std::string function;   ///< its name in reports
  std::string signature;  ///< types of the tensor arguments, "f32[8,3]"; empty where there are none
  std::variant<GraphBreak, Recompilation> what;

  /// One line: "f  f64[8,3]  recompiled: operator 1, aten::relu was f32[8,3], is f64[8,3]".
  [[nodiscard]] std::string text() const;
};

/// Prints Event::text().
std::ostream& operator<<(std::ostream& out, const Event& event);

}  // namespace sinter
