#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/course.h"

/// What a recording says about the courses that are known.
namespace sinter::frontend {

/// What a recording says about one known course.
struct Meeting {
  bool same = false;                             ///< it read the same, and did the same
  std::optional<std::string> difference;         ///< it read the same, and did something else
  std::optional<std::vector<Operand>> operands;  ///< the two are one but for these
};
/// True when an argument of the call that was recorded now is a tensor that the known recording found closed over, or
/// the other way round: two cases of one program.
[[nodiscard]] bool closes_over_argument(const Guards& known_guards, const Trace& known, const Trace& now,
                                        const detail::Flat& arguments);

/// What a recording did otherwise than one that is known, of a program that does the same again; nothing where it did.
[[nodiscard]] std::optional<std::string> difference_of(const Recorded& known, const Recorded& now);

[[nodiscard]] Meeting meet(const Course& known, const Course& now, const detail::Flat& arguments);

/// True when no other course was recorded for a number that an operand would take in.
[[nodiscard]] bool leaves_room(const std::vector<std::shared_ptr<Course>>& courses, const Course& known,
                               const std::vector<Operand>& operands);

/// True when a course says nothing about calls like the one that was recorded now: its state is gone, or gradients and
/// optimizers were otherwise when it was recorded.
[[nodiscard]] bool is_outdated(const Course& known, const Course& now);

}  // namespace sinter::frontend
