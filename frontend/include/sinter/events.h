#pragma once

#include <iosfwd>
#include <string>
#include <variant>
#include <vector>

#include "compiler/support/errors.h"
#include "compiler/support/report.h"

namespace sinter {

/// A call fitted nothing that was compiled before, and was recorded and compiled beside it.
struct Recompilation {
  std::vector<GuardMiss> because;  ///< what failed in the nearest earlier entry: the guard, what it was, what it is
};

/// As many entries are compiled as may be: further combinations of guards run as eager runs them.
struct LimitReached {
  std::string reason;  ///< one sentence
};

/// What Options::on_event is told.
struct Event {
  std::string function;   ///< its name in reports
  std::string signature;  ///< types of the entry's tensor arguments, "f32[8,3]"; empty where there are none
  std::variant<GraphBreak, Recompilation, LimitReached> what;

  /// One line: "resnet50  f16[8,3,224,224]  recompiled: input 0: size[0] was 1, is 8".
  [[nodiscard]] std::string text() const;
};

/// Prints Event::text().
std::ostream& operator<<(std::ostream& out, const Event& event);

}  // namespace sinter
