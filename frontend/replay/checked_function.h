#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "frontend/counters.h"
#include "frontend/dynamic_marks.h"
#include "frontend/modules.h"
#include "frontend/replay/budget.h"
#include "frontend/replay/findings.h"
#include "frontend/replay/path_store.h"
#include "frontend/replay/session.h"
#include "frontend/replay/trial.h"
#include "sinter/detail/function.h"

namespace sinter::detail {

/// A function whose host code runs on every call (Replay::checked). Thread-safe.
class CheckedFunction {
 public:
  CheckedFunction(const Options& options, const std::vector<frontend::NamedModule>& modules, const std::string& name);

  /// Runs the program, exactly once unless it asks for memory that is not there.
  void call(const Flat& arguments, const Program& program);
  [[nodiscard]] Report report() const;
  [[nodiscard]] Stats stats() const { return counters_.read(); }

 private:
  void run(const Flat& arguments, const Program& program, frontend::News& news);
  // True where the call did nothing new.
  [[nodiscard]] bool run_checked(const Flat& arguments, const Program& program, frontend::News& news);
  [[nodiscard]] bool run_session(const std::shared_ptr<frontend::Session>& session, const Program& program);
  void run_without_stand_ins(frontend::Session& session, const Program& program);
  void run_eagerly(const Program& program);
  void keep_promises(const Flat& arguments);
  [[nodiscard]] std::vector<int64_t> promised_sizes(const Flat& arguments);
  [[nodiscard]] frontend::Trial::Way way_of_next_call();
  /// True where recent calls say that this one would do what may not be recorded now.
  [[nodiscard]] bool rests();
  /// True where the account tells of nothing new.
  [[nodiscard]] bool note(const frontend::Session::Account& account);

  const Options options_;
  const std::string name_;
  frontend::Counters counters_;
  frontend::Budget budget_;
  frontend::Trial trial_;
  frontend::Findings findings_;
  const std::shared_ptr<frontend::PathStore> paths_;
  std::atomic<bool> eager_{false};
  std::atomic<int64_t> in_vain_{0};     ///< calls in a row that did what the budget did not allow to record
  std::atomic<int64_t> resting_{0};     ///< calls that are still to run as eager runs them
  std::atomic<bool> has_marks_{false};  ///< sinter::mark_dynamic has promised something
  std::mutex promises_mutex_;
  std::vector<frontend::SizePromise> promises_;
};

}  // namespace sinter::detail
