#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "frontend/course.h"
#include "frontend/host_log.h"
#include "frontend/segment.h"
#include "sinter/detail/flatten.h"

namespace sinter::frontend {

/// The courses of one entry as a tree: a segment runs, the host looks at a value, and what it sees chooses the segment
/// that follows. Nothing that outlives the call is written before the last segment, and generators that were drawn from
/// are rewound when a call has to be left, so that it can be run again from its beginning.
/// Thread-safe; `add` is called by one thread at a time.
class Paths {
 public:
  /// `argument_alignment` is what the entry's guards promise.
  Paths(const Options& options, std::vector<int64_t> argument_alignment);
  ~Paths();

  enum class Answer : uint8_t {
    replayed,
    record,  ///< the values it read are new, or it is time to look whether the program still does the same
    full,    ///< the values are new, and there are as many courses as may be
    filled,  ///< the same, for the first time
    eager,   ///< an operator or a host function threw: eager throws the same, with what it writes before
  };
  /// Answers a call. `is_due` says of the number of a course's call whether it is to be recorded again. Throws
  /// InternalError when a plan no longer fits and nothing was written, HalfWritten when something was. `log` is told of
  /// the host functions that ran: those of a call that is not replayed must not run again.
  [[nodiscard]] Answer follow(const detail::Flat& arguments, const Modes& modes,
                              const std::function<bool(int64_t)>& is_due, HostLog& log, detail::Replay& replay);

  /// What became of a recording.
  struct Added {
    bool known = false;                     ///< it could be compared with earlier ones
    std::optional<std::string> difference;  ///< from them: the program does not depend on what it reads alone
    std::optional<GraphBreak> graph_break;  ///< it was compiled, and cannot be replayed in this mode
    std::vector<GuardMiss> because;         ///< it became a course beside others: how it left the nearest of them
  };
  /// Compares a course with the one that read the same, or compiles it and adds it where there is none. One that
  /// differs from another in nothing but numbers that it read becomes one with it, and the numbers operands. `results`
  /// are the tensors that the recording returned. Throws InternalError when compiling fails.
  [[nodiscard]] Added add(std::shared_ptr<Course> course, std::span<const at::Tensor> results,
                          const detail::Flat& arguments, const Modes& modes);

  /// The break of the calls that read something new when there are as many courses as may be; nothing before the first.
  [[nodiscard]] std::optional<GraphBreak> limit() const;
  void add_to(EntryReport& report) const;

 private:
  struct Step;
  struct Tree;
  class Walk;
  class Grower;

  Answer answer_of(Walk& walk, const Modes& modes, const std::function<bool(int64_t)>& is_due, detail::Replay& replay);
  [[nodiscard]] bool is_due_here(const Walk& walk, const std::function<bool(int64_t)>& is_due) const;
  [[nodiscard]] bool is_full(const Tree& tree) const;
  /// True for the first time.
  [[nodiscard]] bool note_limit(const Step& step);

  const Options& options_;
  const std::vector<int64_t> argument_alignment_;
  std::atomic<std::shared_ptr<const Tree>> tree_;
  mutable std::mutex mutex_;  ///< of what follows
  std::optional<GraphBreak> limit_;
};

}  // namespace sinter::frontend
