#pragma once

#include <string>
#include <vector>

#include "sinter/profile.h"

namespace sinter::frontend {

/// Operators of one line, phase and name together, of all modules that are built alike.
struct OperatorSum {
  Phase phase = Phase::other;
  std::string op;
  std::string autograd;
  std::string line;
  std::vector<int64_t> modules;  ///< each once
  double milliseconds = 0;       ///< a step
  int64_t calls = 0;             ///< of all traced steps
};

/// Those that take longest first.
[[nodiscard]] std::vector<OperatorSum> operator_sums(const ModeProfile& profile);

/// Milliseconds a step of one phase.
[[nodiscard]] double time_of_phase(const ModeProfile& profile, Phase phase);

inline constexpr Phase all_phases[] = {Phase::forward,   Phase::loss,     Phase::backward,
                                       Phase::optimizer, Phase::compiled, Phase::other};

/// "parameter", "stack".
[[nodiscard]] const char* name(Attribution how);

}  // namespace sinter::frontend
