#include "compiler/support/report.h"

namespace sinter {

void EntryReport::add_phase(const std::string& phase, double seconds) {
  for (PhaseTime& known : phases) {
    if (known.name != phase) continue;
    known.seconds += seconds;
    return;
  }
  phases.push_back({phase, seconds});
}

}  // namespace sinter
