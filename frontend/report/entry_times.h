#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "compiler/support/compile_observer.h"
#include "frontend/report/compile_log.h"

namespace sinter::frontend {

/// Collects what compiling one entry takes, and hands it to a log when that is over. Thread-safe. The log outlives it.
class EntryTimes final : public CompileObserver {
 public:
  EntryTimes(CompileLog& log, std::string function);

  void phase(std::string_view name, Time begin, Time end) override;
  void kernel(std::string_view name, std::string_view origin, Time begin, Time end) override;
  /// The entry is compiled, for inputs of these types, or has failed. Phases that follow go to the log at once.
  void finish(const std::string& signature);

 private:
  void add(CompileEvent event, Time begin, Time end);

  CompileLog& log_;
  const std::string function_;
  const int64_t entry_;
  const Time begin_;
  std::mutex mutex_;  ///< of what follows
  bool finished_ = false;
  double in_phases_ = 0;
  std::vector<CompileEvent> events_;
};

}  // namespace sinter::frontend
