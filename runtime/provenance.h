#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/compile_observer.h"
#include "compiler/support/report.h"
#include "runtime/disk_cache.h"

namespace sinter::runtime {

/// Where a kernel's machine code came from.
struct Provenance {
  bool from_disk = false;
  std::string cache;    ///< the disk cache's answer: "hit", "absent", "damaged: checksum"
  std::string problem;  ///< that kept the code from being stored; empty when none did
};

/// Machine code and where it came from.
struct MachineCode {
  std::vector<char> bytes;
  Provenance provenance;
};

/// The code under a key: from the cache on disk, or else built and stored there for later processes. Throws what
/// `build` throws, and nothing then is stored.
[[nodiscard]] MachineCode find_or_build(DiskCache& cache, const CacheKey& key,
                                        const std::function<std::vector<char>()>& build);

/// "built", "disk" or "shared". `shared`: an equal kernel of this process had it already.
[[nodiscard]] const char* origin_of(const Provenance& provenance, bool shared);

/// Says in a kernel's record how it was come by. `shared` as above.
void record_provenance(KernelRecord& record, const Provenance& provenance, bool shared, double seconds);

/// Tells an observer, where there is one, of a kernel that this thread has come by between these times.
void tell_of_kernel(CompileObserver* observer, std::string_view name, const Provenance& provenance, bool shared,
                    CompileObserver::Time begin, CompileObserver::Time end);

/// Says in a report, once, that a kernel could not be stored.
void note_problem(EntryReport& report, const Provenance& provenance);

}  // namespace sinter::runtime
