#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace sinter {

/// One piece of work that compiling took, as it lies in time.
struct CompileEvent {
  enum class Kind : uint8_t {
    call,    ///< of a compiled function, in which operators were recorded
    entry,   ///< one compiled segment: its phases and what lies between them
    phase,   ///< of an entry
    kernel,  ///< that an entry came by within its phase "kernels", maybe on another thread
  };
  Kind kind = Kind::phase;
  std::string name;    ///< of a phase: "pass fuse", "codegen"; of a kernel; of an entry: the types of its inputs
  std::string origin;  ///< of a kernel: "built", "disk" or "shared" (KernelRecord)
  std::string function;
  int64_t entry = 0;    ///< counted from 1 by function, in the order in which they were begun; 0: of none
  int64_t thread = 0;   ///< the system's number
  double start = 0;     ///< seconds since CompileTimes::started
  double duration = 0;  ///< seconds
  /// Seconds of the duration that the totals hold: all of a phase, what recording took of a call, what no phase took of
  /// an entry, nothing of a kernel.
  double counted = 0;
};

/// Where the compile time of one process went. Seconds are those of the calls that waited for it, beyond what eager
/// would have taken.
struct CompileTimes {
  struct Row {
    std::string function;
    std::string phase;  ///< "capture", "graph", "pass fuse", "codegen", "kernels", "load", "prepare", "record", "other"
    int64_t count = 0;  ///< how often it was: mostly once per compiled segment
    double seconds = 0;
  };
  struct Kernels {
    std::string function;
    int64_t built = 0, disk = 0, shared = 0;  ///< as in KernelRecord::origin
    double seconds = 0;                       ///< all of them on all threads together; part of the phase "kernels"
  };
  std::string program;               ///< its file's name
  int64_t process = 0;               ///< the system's number
  double started = 0;                ///< seconds since 1970; the time from which events count
  std::vector<Row> rows;             ///< in the order in which function and phase were first seen
  std::vector<Kernels> kernels;      ///< by function
  std::vector<CompileEvent> events;  ///< in the order in which they ended; the newest 16,384
  int64_t dropped = 0;               ///< events before them; rows and kernels hold them

  /// The sum of all rows: what compiling took beyond eager.
  [[nodiscard]] double total() const;
  [[nodiscard]] std::string text() const;  ///< a table: one line a phase, one column a function
  [[nodiscard]] std::string json() const;  ///< docs/reports.md; several processes: `sinter compile-times --from`
};

std::ostream& operator<<(std::ostream& out, const CompileTimes& times);

/// Snapshot of what this process has compiled so far. Thread-safe.
///
/// With SINTER_COMPILE_TIMES=folder, a process that ends with exit() or by returning from main writes it there itself.
[[nodiscard]] CompileTimes compile_times();

}  // namespace sinter
