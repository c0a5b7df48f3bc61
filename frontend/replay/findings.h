#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "frontend/report/counters.h"
#include "sinter/events.h"
#include "sinter/options.h"

namespace sinter::frontend {

/// What one call has found: told to Options::on_event once the call's work is done.
using News = std::vector<decltype(Event::what)>;

/// A break under Options::fullgraph. Caught at the edge of the call, which takes back what it has written.
class Refused : public UserError {
 public:
  using UserError::UserError;
};

/// What a function whose host code runs has found in its program: breaks and divergences. Thread-safe.
class Findings {
 public:
  Findings(const Options& options, std::string function, Counters& counters)
      : options_(options), function_(std::move(function)), counters_(counters) {}

  /// Notes a break; one that is known already is no news. Throws Refused under fullgraph, known or not.
  void note(GraphBreak reason, News& news);
  /// Notes that a program has left what was recorded.
  void note(Recompilation divergence, News& news);
  /// Tells Options::on_event. What it throws is noted once, and does not reach the caller.
  void tell(News news, const std::string& signature);

  /// Where an operator threw last, out of the callable.
  void note_failure(std::string place);
  [[nodiscard]] std::string failed_at() const;

  [[nodiscard]] std::vector<GraphBreak> breaks() const;
  /// Sentences for the report.
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  static constexpr size_t max_divergences = 8;  ///< told by reports

  void add_note(std::string text);

  const Options& options_;
  const std::string function_;
  Counters& counters_;
  mutable std::mutex mutex_;  ///< of what follows
  std::vector<GraphBreak> breaks_;
  std::vector<std::string> notes_;
  std::string failed_at_;
  size_t divergences_ = 0;
  bool callback_threw_ = false;
};

}  // namespace sinter::frontend
