#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/support/errors.h"

/// Records a report is made of: plain data, filled by the parts, rendered by the frontend.
namespace sinter {

struct PhaseTime {
  std::string name;  ///< "pass functionalize", "codegen", "kernels", "load", "record"
  double seconds = 0;
};

struct KernelRecord {
  std::string name;
  std::vector<std::string> ops;
  std::vector<std::string> modules;
  std::vector<std::string> sources;
  int64_t launches = 0;  ///< per call
  int64_t bytes = 0;     ///< one launch must move
  int registers = -1;    ///< per thread; -1 unknown (CPU)
  int spill_bytes = -1;
  int shared_bytes = -1;
  double build_seconds = 0;  ///< or reading from disk; 0 when shared
  std::string origin;        ///< "built", "disk", "shared" (equal text already in this process)
  std::string cache;         ///< what the kernel cache said: "hit", "absent", "damaged: checksum"; docs/caching.md
};

struct ExternRecord {
  std::string op;
  int64_t calls = 0;                 ///< per call of the function
  std::vector<std::string> modules;  ///< of each call, in order; empty where none is known
};

/// What was chosen between for library calls that compute the same of tensors of the same types.
struct ChoiceRecord {
  struct Alternative {
    std::string name;         ///< "LibTorch", "cuBLASLt 3"
    double microseconds = 0;  ///< of one call, the median of several; infinity: the library refused it
  };
  std::string problem;  ///< "f16[25216,768] x f16[768,3072] + bias"
  std::string chosen;   ///< the alternative's name
  std::string origin;   ///< "measured", "disk" (measured by an earlier process), "not measured"
  int64_t calls = 0;    ///< per call of the function
  std::vector<Alternative> measured;
};

struct GuardMiss {
  std::string guard;  ///< "operator 1, aten::relu"
  std::string was;
  std::string is;
};

/// Bytes that live at the moment of a run of a segment at which most do, beside its inputs, state and what is computed
/// once.
struct SegmentOwner {
  enum class Kind : uint8_t {
    temporary,       ///< what a kernel of ours hands to later steps: in the arena
    library_result,  ///< what a library call hands to later steps
    output,          ///< what the segment gives
  };
  Kind kind = Kind::temporary;
  std::string module;  ///< of the operator that computes them; empty where not known
  std::string source;  ///< its place in the program; empty where not known
  int64_t bytes = 0;
};

/// "temporaries", "library results", "outputs"
[[nodiscard]] const char* name(SegmentOwner::Kind kind);

struct MemoryRecord {
  int64_t arena_bytes = 0;
  int64_t peak_bytes = -1;  ///< of one compiled call beyond what was allocated before it; -1 not measured
  int64_t eager_peak_bytes = -1;
  std::vector<SegmentOwner> owners = {};  ///< the largest first
};

/// How the kernels of one entry were come by.
struct KernelOrigins {
  int64_t built = 0;
  int64_t shared = 0;                     ///< equal to another kernel of this process
  int64_t disk = 0;                       ///< found in the kernel cache on disk
  std::map<std::string, int64_t> misses;  ///< why the cache did not have those that were built
};

/// One compiled segment.
struct EntryReport {
  std::string signature;  ///< "f16[1,3,224,224]"
  std::string device;     ///< "cuda:0"
  bool compiled = false;  ///< false: calls run as eager runs them; `breaks` says why
  std::vector<PhaseTime> phases;
  std::vector<KernelRecord> kernels;
  std::vector<ExternRecord> externs;
  std::vector<ChoiceRecord> choices;
  std::vector<GraphBreak> breaks;
  std::vector<std::string> notes;  ///< "launched directly: aten::multinomial cannot be recorded"
  std::string internal_error;      ///< message and artifact of a kept InternalError
  MemoryRecord memory;
  std::vector<std::string> dynamic;      ///< sizes that may change: "s0: size[0] of input 0"; docs/comparison.md
  int64_t instantiations = 0;            ///< shapes that got a plan without running the callable
  double instantiation_seconds = 0;      ///< all of them together
  int64_t built_for_instantiations = 0;  ///< kernels that none of the shapes before had
  int64_t recorded_instantiations = 0;   ///< shapes of those kept that are replayed from a graph of their own
  int64_t graphs = 0;                    ///< CUDA Graphs replayed per call
  int64_t captured_calls = 0;            ///< operators of the segment
  int64_t replays = 0;                   ///< calls answered by the executable
  int64_t early = 0;                     ///< of these, begun before the program had called all of their operators

  void add_phase(const std::string& phase, double seconds);
  [[nodiscard]] KernelOrigins kernel_origins() const;
};

/// Everything one compiled function has to tell.
struct Report {
  std::string function;
  std::string mode;
  std::vector<EntryReport> entries;
  std::string failed_at;  ///< module path and place of the operator that threw last out of the callable; or empty
  std::vector<std::string> notes;

  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string json() const;  ///< schema in docs/reports.md
};

}  // namespace sinter
