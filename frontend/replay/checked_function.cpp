#include "frontend/replay/checked_function.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <unordered_map>

#include "frontend/capture.h"
#include "frontend/replay/compiled_path.h"
#include "frontend/tensor_memory.h"

namespace sinter::detail {

using frontend::CompiledPath;
using frontend::CompileTimer;
using frontend::Ending;
using frontend::LiveNumber;
using frontend::OpTraits;
using frontend::PathHash;
using frontend::PathNode;
using frontend::PathTree;
using frontend::Session;
using frontend::TraceMemoryId;
using frontend::Trial;

/// The trees of one function, and its compiled segments.
class CheckedFunction::Library final : public frontend::PathLibrary {
 public:
  Library(const Options& options, const std::vector<frontend::NamedModule>& modules, std::string name,
          frontend::Counters& counters, frontend::Budget& budget)
      : options_(options), name_(std::move(name)), counters_(counters), budget_(budget) {
    for (const auto& named : frontend::named_tensors(modules)) {
      if (const auto tensor = named.tensor.lock()) modules_.emplace(tensor.get(), named.module);
    }
  }

  const OpTraits& traits(const c10::OperatorHandle& op) override {
    const std::lock_guard lock(mutex_);
    auto& known = traits_[&op.schema()];
    if (known == nullptr) known = std::make_unique<OpTraits>(facts_.of(op));
    return *known;
  }

  PathTree& tree(const frontend::Modes& settings) override {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, tree] : trees_) {
      if (known == settings) return *tree;
    }
    return *trees_.emplace_back(settings, std::make_unique<PathTree>()).second;
  }

  [[nodiscard]] bool may_record() const override {
    if (!budget_.allows()) return false;
    const std::lock_guard lock(mutex_);
    size_t steps = 0;
    for (const auto& [settings, tree] : trees_) steps += tree->size();
    return steps < max_steps;
  }

  void note_end(PathNode& end, std::span<const TraceMemoryId> escaped, std::string_view reason) override {
    const std::lock_guard lock(end.ending.mutex);
    note(end.ending, escaped, reason);
    ++end.ending.visits;
  }

  std::shared_ptr<CompiledPath> compiled(PathNode& end, std::span<const TraceMemoryId> escaped,
                                         std::span<const LiveNumber> numbers, std::string_view reason) override {
    if (auto path = end.ending.compiled.load()) {
      if (path->gives(escaped) && path->takes(numbers)) return path;
    }
    const std::unique_lock lock(end.ending.mutex, std::try_to_lock);
    if (!lock) return nullptr;
    note(end.ending, escaped, reason);
    if (++end.ending.visits == 1 || !end.ending.refusal.empty()) return nullptr;
    auto path = compile(end);
    // Another thread may have made one more number live meanwhile.
    return path != nullptr && path->takes(numbers) ? path : nullptr;
  }

  void note_recording(double seconds) override { budget_.note_recording(seconds); }

  void exclude(const c10::OperatorHandle& op) override {
    const std::lock_guard lock(mutex_);
    traits_.at(&op.schema())->excluded.store(true, std::memory_order_relaxed);
  }

  std::string module_of(const at::Tensor& tensor) const override {
    const auto found = modules_.find(tensor.unsafeGetTensorImpl());
    return found == modules_.end() ? std::string() : found->second;
  }

  /// True where all work is done when a call ends.
  [[nodiscard]] bool on_the_cpu() const { return !uses_gpu_.load(std::memory_order_relaxed); }

  [[nodiscard]] std::vector<EntryReport> reports() const {
    const std::lock_guard lock(mutex_);
    std::vector<EntryReport> reports;
    for (const auto& path : paths_) reports.push_back(path->report());
    return reports;
  }

 private:
  /// What is kept of one function: further steps and segments run as eager runs them.
  static constexpr size_t max_steps = 65536;
  static constexpr size_t max_paths = 512;

  static void note(Ending& ending, std::span<const TraceMemoryId> escaped, std::string_view reason) {
    const auto add = [](auto& known, const auto& item) {
      if (std::ranges::find(known, item) == known.end()) known.emplace_back(item);
    };
    for (const TraceMemoryId memory : escaped) add(ending.escaped, memory);
    add(ending.reasons, reason);
  }

  /// True where the same operators were compiled for other sizes.
  bool came_for_other_sizes(const PathNode& end) {
    const PathHash hash = PathHash::of(steps_to(end));
    const std::lock_guard lock(mutex_);
    const auto [known, first] = sizes_.emplace(hash.operators, hash.sizes);
    return !first && known->second != hash.sizes;
  }

  std::shared_ptr<CompiledPath> compile(PathNode& end) {
    if (!budget_.allows()) return nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (paths_.size() >= max_paths) return nullptr;
    }
    const runtime::Stopwatch stopwatch;
    auto path = build(end);
    budget_.note_compilation(stopwatch.seconds());
    return path;
  }

  /// Null where that fails, which is not tried again.
  std::shared_ptr<CompiledPath> build(PathNode& end) {
    const CompileTimer timer(counters_);
    try {
      const bool generic_sizes = options_.dynamic.value_or(came_for_other_sizes(end));
      auto path = std::make_shared<CompiledPath>(end, options_, name_, generic_sizes);
      end.ending.compiled.store(path);
      if (path->on_gpu()) uses_gpu_.store(true, std::memory_order_relaxed);
      const std::lock_guard lock(mutex_);
      paths_.push_back(path);
      frontend::Counters::add(counters_.entries);
      return path;
    } catch (const InternalError& error) {
      if (options_.strict) throw;
      end.ending.refusal = error.what();
      return nullptr;
    }
  }

  const Options& options_;
  const std::string name_;
  frontend::Counters& counters_;
  frontend::Budget& budget_;
  std::atomic<bool> uses_gpu_{false};
  std::unordered_map<const c10::TensorImpl*, std::string> modules_;
  mutable std::mutex mutex_;  ///< of what follows
  frontend::OpFactsCache facts_;
  std::vector<std::pair<frontend::Modes, std::unique_ptr<PathTree>>> trees_;
  std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<OpTraits>> traits_;
  std::vector<std::shared_ptr<CompiledPath>> paths_;
  std::unordered_map<size_t, size_t> sizes_;  ///< that a path of these operators was compiled for, by their hashes
};

CheckedFunction::CheckedFunction(const Options& options, const std::vector<frontend::NamedModule>& modules,
                                 const std::string& name)
    : options_(options),
      name_(name),
      budget_(options.compile_budget),
      library_(std::make_shared<Library>(options_, modules, name_, counters_, budget_)) {}

CheckedFunction::~CheckedFunction() = default;

void CheckedFunction::call(const Program& program) {
  if (frontend::capturing() || eager_.load(std::memory_order_relaxed)) return run_eagerly(program);
  const runtime::Stopwatch stopwatch;
  const Trial::Way way = way_of_next_call();
  bool comparable = way == Trial::Way::eager;
  if (way == Trial::Way::compiled && !rests()) {
    comparable = run_checked(program);
  } else {
    run_eagerly(program);
  }
  const double seconds = stopwatch.seconds();
  if (comparable) trial_.note(way, seconds);
  budget_.note_call(seconds);
}

Trial::Way CheckedFunction::way_of_next_call() {
  const bool compares = library_->on_the_cpu() && std::isfinite(options_.compile_budget);
  return compares ? trial_.next() : Trial::Way::compiled;
}

void CheckedFunction::run_eagerly(const Program& program) {
  try {
    program.run(program.context, nullptr);
  } catch (...) {
    frontend::Counters::add(counters_.threw);
    throw;
  }
  frontend::Counters::add(counters_.eager);
}

bool CheckedFunction::run_checked(const Program& program) {
  const auto session = std::make_shared<Session>(library_);
  try {
    frontend::with_session(session, [&] { program.run(program.context, nullptr); });
  } catch (const std::exception& error) {
    if (frontend::is_memory_missing(error)) {
      run_without_stand_ins(*session, program);
      return false;
    }
    frontend::Counters::add(counters_.threw);
    session->finish();
    throw;
  } catch (...) {
    frontend::Counters::add(counters_.threw);
    session->finish();
    throw;
  }
  session->finish();
  return note(session->account());
}

/// The callable asked for memory that was not there: from here on it runs as eager runs it, this call included, unless
/// that would write twice.
void CheckedFunction::run_without_stand_ins(Session& session, const Program& program) {
  give_up({.code = BreakCode::unsupported_op,
           .op = {},
           .where = {},
           .reason = "the callable asks for the memory of a tensor that is computed later",
           .hint = "read it with an operator, or after the compiled call"});
  if (!session.account().wrote) {
    session.abandon();
    return run_eagerly(program);
  }
  frontend::Counters::add(counters_.threw);
  session.finish();
  throw UserError(name_ +
                  ": the callable asks for the memory of a tensor that is computed later, after it has written; this "
                  "call ends here, later ones run as eager runs them. Read it with an operator (item(), copy to "
                  "another tensor), or compile the part around it");
}

void CheckedFunction::give_up(GraphBreak reason) {
  eager_.store(true, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  breaks_.push_back(std::move(reason));
  frontend::Counters::add(counters_.breaks);
}

bool CheckedFunction::rests() {
  int64_t left = resting_.load(std::memory_order_relaxed);
  while (left > 0) {
    if (resting_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

/// A program that does something new on every call is left to eager for longer and longer while the budget allows no
/// more.
bool CheckedFunction::note(const Session::Account& account) {
  constexpr int64_t longest_rest = 10;  // doublings
  const bool nothing_new = account.recorded == 0 && account.interpreted == 0 && !account.cut_off;
  const bool replayed = nothing_new && (account.replayed > 0 || account.at_once == 0);
  frontend::Counters::add(replayed ? counters_.replayed : account.recorded > 0 ? counters_.recorded : counters_.eager);
  if (nothing_new) {
    in_vain_.store(0, std::memory_order_relaxed);
  } else if (!budget_.allows()) {
    const int64_t in_vain = in_vain_.fetch_add(1, std::memory_order_relaxed);
    resting_.store(int64_t{1} << std::min(in_vain, longest_rest), std::memory_order_relaxed);
  }
  return nothing_new;
}

Report CheckedFunction::report() const {
  Report report{.function = name_,
                .mode = options_.mode == Mode::Default ? "default" : "reduce-overhead",
                .entries = library_->reports(),
                .failed_at = {},
                .notes = {"checked: the callable's host code runs on every call"}};
  report.notes.push_back(budget_.text());
  if (auto finding = trial_.finding(); !finding.empty()) report.notes.push_back(std::move(finding));
  const std::lock_guard lock(mutex_);
  if (breaks_.empty()) return report;
  EntryReport eager;
  eager.signature = name_;
  eager.breaks = breaks_;
  report.entries.push_back(std::move(eager));
  return report;
}

}  // namespace sinter::detail
