#pragma once

#include <set>
#include <string>

#include "../hostile/harness.h"
#include "program.h"

namespace sinter::test::fuzz {

enum class Verdict {
  equal,      ///< as hostile::difference says
  rounding,   ///< not, but no further apart than eager is from itself when its data is moved by a rounding
  different,  ///< or Sinter failed
};

/// What became of one program.
struct Finding {
  Verdict verdict = Verdict::equal;
  std::string difference;
  std::string report;
  std::set<std::string> breaks;
  int calls = 0;
  int replayed = 0;  ///< calls that compiled code answered
  int entries = 0;
  bool effects = false;  ///< the host code has some
  bool throws = false;   ///< some call threw, eager and compiled
};

/// Runs a program eager and compiled.
[[nodiscard]] Finding check(const Program& program, const hostile::Place& place);

}  // namespace sinter::test::fuzz
