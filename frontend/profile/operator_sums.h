#pragma once

#include <algorithm>
#include <optional>
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
  int64_t launches = 0;          ///< of all traced steps
  bool work_known = true;        ///< of all calls
  double bytes = 0;              ///< a step
  double flops = 0;              ///< a step
  std::string dtype;             ///< of the operations
  std::optional<double> least;   ///< milliseconds a step that the device needs; nothing where it is not known

  /// Milliseconds a step that could be won; 0 where it is not known.
  [[nodiscard]] double gain() const { return least ? std::max(0.0, milliseconds - *least) : 0; }
};

/// Those that take longest first.
[[nodiscard]] std::vector<OperatorSum> operator_sums(const ModeProfile& profile);

/// Those whose limit is known, the ones that could win most first.
[[nodiscard]] std::vector<OperatorSum> sums_by_gain(std::vector<OperatorSum> sums);

/// Those that take at least a hundredth of the time of a step in a form that deterministic algorithms ask for, the
/// longest first; slow_hint_for says what to do.
[[nodiscard]] std::vector<OperatorSum> slow_sums(const ModeProfile& profile);

/// Milliseconds a step of one phase.
[[nodiscard]] double time_of_phase(const ModeProfile& profile, Phase phase);

inline constexpr Phase all_phases[] = {Phase::forward,   Phase::loss,     Phase::backward,
                                       Phase::optimizer, Phase::compiled, Phase::other};

/// "parameter", "stack".
[[nodiscard]] const char* name(Attribution how);

}  // namespace sinter::frontend
