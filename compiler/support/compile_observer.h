#pragma once

#include <chrono>
#include <string_view>

#include "compiler/support/report.h"

namespace sinter {

/// Told what the work of compiling one segment consists of, when a piece of it is done. Thread-safe.
class CompileObserver {
 public:
  using Time = std::chrono::steady_clock::time_point;
  virtual ~CompileObserver() = default;

  /// A phase began and ended on the calling thread. Phases of a segment do not overlap.
  virtual void phase(std::string_view name, Time begin, Time end) = 0;
  /// The calling thread has come by a kernel within the phase "kernels". `origin`: as in KernelRecord.
  virtual void kernel(std::string_view name, std::string_view origin, Time begin, Time end) = 0;
};

/// Ends now a phase that began then: adds it to the report, and tells the observer where there is one.
void end_phase(EntryReport& report, CompileObserver* observer, std::string_view name, CompileObserver::Time begin);

}  // namespace sinter
