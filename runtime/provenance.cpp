#include "runtime/provenance.h"

#include <algorithm>

namespace sinter::runtime {

MachineCode find_or_build(DiskCache& cache, const CacheKey& key, const std::function<std::vector<char>()>& build) {
  CacheLookup found = cache.find(key);
  MachineCode code;
  code.provenance.cache = found.reason();
  code.provenance.from_disk = found.hit();
  if (found.hit()) {
    code.bytes = std::move(found.payload);
    return code;
  }
  code.bytes = build();
  code.provenance.problem = cache.store(key, code.bytes);
  return code;
}

const char* origin_of(const Provenance& provenance, bool shared) {
  if (shared) return "shared";
  return provenance.from_disk ? "disk" : "built";
}

void record_provenance(KernelRecord& record, const Provenance& provenance, bool shared, double seconds) {
  record.build_seconds = seconds;
  record.origin = origin_of(provenance, shared);
  record.cache = shared ? "hit: this process" : provenance.cache;
}

void tell_of_kernel(CompileObserver* observer, std::string_view name, const Provenance& provenance, bool shared,
                    CompileObserver::Time begin, CompileObserver::Time end) {
  if (observer != nullptr) observer->kernel(name, origin_of(provenance, shared), begin, end);
}

void note_problem(EntryReport& report, const Provenance& provenance) {
  if (provenance.problem.empty()) return;
  std::string note = "kernel cache: " + provenance.problem;
  if (std::find(report.notes.begin(), report.notes.end(), note) == report.notes.end()) {
    report.notes.push_back(std::move(note));
  }
}

}  // namespace sinter::runtime
