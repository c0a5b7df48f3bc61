#include "compiler/support/report.h"

namespace sinter {

const char* name(SegmentOwner::Kind kind) {
  switch (kind) {
    case SegmentOwner::Kind::temporary:
      return "temporaries";
    case SegmentOwner::Kind::library_result:
      return "library results";
    case SegmentOwner::Kind::output:
      return "outputs";
  }
  return "";
}

void EntryReport::add_phase(const std::string& phase, double seconds) {
  for (PhaseTime& known : phases) {
    if (known.name != phase) continue;
    known.seconds += seconds;
    return;
  }
  phases.push_back({phase, seconds});
}

KernelOrigins EntryReport::kernel_origins() const {
  KernelOrigins origins;
  for (const KernelRecord& kernel : kernels) {
    if (kernel.origin == "shared") {
      ++origins.shared;
    } else if (kernel.origin == "disk") {
      ++origins.disk;
    } else {
      ++origins.built;
      ++origins.misses[kernel.cache];
    }
  }
  return origins;
}

}  // namespace sinter
