#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "frontend/function/dynamic_marks.h"
#include "frontend/replay/budget.h"
#include "frontend/replay/findings.h"
#include "frontend/replay/path_store.h"
#include "frontend/replay/session.h"
#include "frontend/replay/trial.h"
#include "frontend/report/counters.h"
#include "frontend/torch/modules.h"
#include "frontend/trusted/trusted_calls.h"
#include "sinter/detail/function.h"

namespace sinter::detail {

/// What was recorded and compiled of one callable since it was made or reset. Thread-safe.
class Function {
 public:
  Function(const Options& options, const std::vector<frontend::NamedModule>& modules, const std::string& name);

  /// See detail::call. The program runs exactly once unless it asks for memory that is not there, or, with
  /// Replay::trusted, not at all.
  [[nodiscard]] bool call(const Flat& arguments, const Program& program, Replay& replay);
  [[nodiscard]] Report report() const;
  [[nodiscard]] Stats stats() const { return counters_.read(); }

 private:
  void tell(frontend::News news, const Program& program);
  void run(const Flat& arguments, const Program& program, frontend::News& news);
  /// `nothing_new` is set where the call did nothing new, also where it throws.
  void run_checked(const Flat& arguments, const Program& program, frontend::News& news, bool& nothing_new);
  void run_session(const std::shared_ptr<frontend::Session>& session, const Program& program, Flat* result,
                   bool& nothing_new);
  void run_without_stand_ins(frontend::Session& session, const Program& program);
  void run_eagerly(const Program& program);
  void keep_promises(const Flat& arguments);
  [[nodiscard]] std::vector<int64_t> promised_sizes(const Flat& arguments);
  [[nodiscard]] frontend::Trial::Way way_of_next_call();
  /// True where recent calls say that this one would do what may not be recorded now.
  [[nodiscard]] bool rests();
  /// True where the call did nothing new.
  [[nodiscard]] bool rest_after(const frontend::Session::Account& account);
  void count(const frontend::Session::Account& account, bool nothing_new);
  void start_cuda_compiler(const Flat& arguments);
  void note_kernels();

  const Options options_;
  const std::string name_;
  frontend::Counters counters_;
  frontend::Budget budget_;
  frontend::Trial trial_;
  frontend::Findings findings_;
  const std::shared_ptr<frontend::PathStore> paths_;
  std::unique_ptr<frontend::TrustedCalls> trusted_;  ///< null with Replay::checked
  std::atomic<bool> eager_{false};
  std::atomic<int64_t> passes_{0};      ///< backward passes that were answered without autograd's engine
  std::atomic<int64_t> in_vain_{0};     ///< calls that did what the budget did not allow to record; others halve it
  std::atomic<int64_t> resting_{0};     ///< calls that are still to run as eager runs them
  std::atomic<bool> has_marks_{false};  ///< sinter::mark_dynamic has promised something
  std::mutex promises_mutex_;
  std::vector<frontend::SizePromise> promises_;

  // NVRTC is started while the first call runs, unless an earlier process left the kernels in the cache.
  std::atomic<bool> started_{false};          ///< the first call has come
  std::atomic<bool> compiler_needed_{false};  ///< that is still to be noted for later processes
  std::string first_signature_;               ///< of the call that started it
  int architecture_ = 0;                      ///< that it was started for
};

}  // namespace sinter::detail
