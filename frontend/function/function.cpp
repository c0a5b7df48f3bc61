#include "frontend/function/function.h"

#include <c10/util/Type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>

#include "compiler/ir/print.h"
#include "frontend/replay/stand_in.h"
#include "frontend/report/compile_log.h"
#include "frontend/torch/convert.h"
#include "frontend/torch/cuda.h"
#include "runtime/known_functions.h"
#include "runtime/nvrtc.h"
#include "runtime/stopwatch.h"

namespace sinter::detail {

using frontend::Counters;
using frontend::News;
using frontend::Session;
using frontend::Trial;

namespace {

/// Types of the tensor arguments: "f32[8,3], i64[4]".
std::string signature_of(const Flat& arguments) {
  std::vector<std::string> types;
  for (const at::Tensor* tensor : arguments.tensors) {
    if (!tensor->defined() || tensor->layout() != c10::kStrided || tensor->is_nested()) continue;
    const ir::Type type = frontend::type_of(*tensor);
    types.push_back(ir::to_string(type, type.device));
  }
  return fmt::format("{}", fmt::join(types, ", "));
}

using Storages = std::vector<const c10::StorageImpl*>;

Storages storages_of(const Flat& arguments) {
  Storages storages;
  for (const at::Tensor* tensor : arguments.tensors) {
    if (tensor->has_storage()) storages.push_back(tensor->storage().unsafeGetStorageImpl());
  }
  return storages;
}

Storages lent_storages_of(const Flat& arguments) {
  Storages lent = storages_of(arguments);
  std::erase_if(lent, [](const c10::StorageImpl* storage) { return !frontend::is_lent(*storage); });
  return lent;
}

}  // namespace

Function::Function(const Options& options, const std::vector<frontend::NamedModule>& modules, const std::string& name)
    : options_(options),
      name_(name),
      budget_(options.compile_budget),
      findings_(options_, name_, counters_),
      paths_(std::make_shared<frontend::PathStore>(options_, modules, name_, counters_, budget_, findings_)),
      trusted_(options.replay == sinter::Replay::trusted ? std::make_unique<frontend::TrustedCalls>() : nullptr) {}

bool Function::call(const Flat& arguments, const Program& program, Replay& replay) {
  const bool inside = frontend::current_session() != nullptr;
  if (trusted_ != nullptr && !inside && trusted_->answer(arguments, replay)) {
    Counters::add(counters_.replayed);
    return true;
  }
  News news;
  try {
    keep_promises(arguments);
    if (inside || eager_.load(std::memory_order_relaxed)) {
      run_eagerly(program);
    } else {
      run(arguments, program, news);
    }
  } catch (...) {
    tell(std::move(news), program);
    throw;
  }
  tell(std::move(news), program);
  return false;
}

void Function::tell(News news, const Program& program) {
  if (!news.empty()) findings_.tell(std::move(news), signature_of(program.arguments(program.given)));
}

void Function::run(const Flat& arguments, const Program& program, News& news) {
  if (!started_.exchange(true, std::memory_order_relaxed)) start_cuda_compiler(arguments);
  const auto begin = std::chrono::steady_clock::now();
  const runtime::Stopwatch stopwatch;
  const Trial::Way way = way_of_next_call();
  const bool rests = way == Trial::Way::compiled && this->rests();
  bool nothing_new = false;
  const auto note = [&] {
    const double own = budget_.note_call(stopwatch.seconds(), !nothing_new);
    if (!rests) trial_.note(way, own);
  };
  try {
    if (way == Trial::Way::compiled && !rests) {
      run_checked(arguments, program, news, nothing_new);
    } else {
      run_eagerly(program);
    }
  } catch (...) {
    note();
    throw;
  }
  note();
  if (const double recorded = paths_->take_recorded(); recorded > 0) {
    frontend::CompileLog::of_process().add_call(name_, begin, recorded);
  }
  if (compiler_needed_.load(std::memory_order_relaxed)) note_kernels();
}

void Function::start_cuda_compiler(const Flat& arguments) {
  const auto on_gpu =
      std::ranges::find_if(arguments.tensors, [](const at::Tensor* tensor) { return tensor->is_cuda(); });
  if (on_gpu == arguments.tensors.end()) return;
  architecture_ = frontend::cuda::device_info((*on_gpu)->device().index()).sm;
  first_signature_ = name_ + " " + signature_of(arguments);
  if (runtime::is_known_function(first_signature_, architecture_)) return;
  runtime::nvrtc::prewarm(architecture_);
  compiler_needed_.store(true, std::memory_order_relaxed);
}

/// Once something was compiled, the next process finds its kernels in the cache.
void Function::note_kernels() {
  if (counters_.entries.load(std::memory_order_relaxed) == 0) return;
  if (compiler_needed_.exchange(false)) runtime::remember_function(first_signature_, architecture_);
}

/// Sizes that sinter::mark_dynamic promised lie in their ranges, else UserError.
void Function::keep_promises(const Flat& arguments) {
  if (!has_marks_.load(std::memory_order_relaxed) && !frontend::has_promises(arguments)) return;
  const std::lock_guard lock(promises_mutex_);
  has_marks_.store(true, std::memory_order_relaxed);
  frontend::collect_promises(arguments, promises_);
  frontend::check_promises(promises_, arguments, name_);
}

/// Sizes of the arguments that sinter::mark_dynamic speaks of.
std::vector<int64_t> Function::promised_sizes(const Flat& arguments) {
  if (!has_marks_.load(std::memory_order_relaxed)) return {};
  const std::lock_guard lock(promises_mutex_);
  return frontend::promised_sizes(promises_, arguments);
}

Trial::Way Function::way_of_next_call() {
  const bool compares = paths_->on_the_cpu() && std::isfinite(options_.compile_budget) && trusted_ == nullptr;
  return compares ? trial_.next() : Trial::Way::compiled;
}

void Function::run_eagerly(const Program& program) {
  try {
    program.run(program.context, nullptr);
  } catch (...) {
    Counters::add(counters_.threw);
    throw;
  }
  Counters::add(counters_.eager);
}

void Function::run_checked(const Flat& arguments, const Program& program, News& news, bool& nothing_new) {
  const bool logs = trusted_ != nullptr && trusted_->watches();
  const auto modes = logs ? std::make_optional(frontend::Modes::current()) : std::nullopt;
  const auto given = logs ? std::make_optional(frontend::GivenArguments(arguments)) : std::nullopt;
  const auto session = std::make_shared<Session>(
      paths_, Session::Setup{.can_take_back = options_.fullgraph,
                             .arguments = options_.freeze ? storages_of(arguments) : Storages(),
                             .lent = lent_storages_of(arguments),
                             .vouched = promised_sizes(arguments),
                             .logs = logs});
  Flat result;
  try {
    run_session(session, program, logs ? &result : nullptr, nothing_new);
  } catch (const frontend::Refused& refused) {
    session->take_back();
    session->move_news_to(news);
    Counters::add(counters_.threw);
    throw UserError(refused.what());
  } catch (...) {
    session->move_news_to(news);
    findings_.note_failure(session->failed_at());
    Counters::add(counters_.threw);
    throw;
  }
  session->move_news_to(news);
  if (logs) {
    const Flat left = program.arguments(program.given);
    if (!given->are(left)) {
      trusted_->refuse("the callable changes which tensors or numbers its arguments hold");
    } else {
      nothing_new ? trusted_->note(left, *modes, *session->log(), result) : trusted_->forget(left, *modes);
    }
  }
}

void Function::run_session(const std::shared_ptr<Session>& session, const Program& program, Flat* result,
                           bool& nothing_new) {
  const auto finish = [&] {
    session->finish();
    nothing_new = rest_after(session->account());
  };
  try {
    frontend::with_session(session, [&] { program.run(program.context, result); });
  } catch (const std::exception& error) {
    if (!frontend::is_memory_missing(error)) {
      finish();
      throw;
    }
    run_without_stand_ins(*session, program);
    return;
  } catch (...) {
    finish();
    throw;
  }
  finish();
  count(session->account(), nothing_new);
}

/// The callable asked for memory that was not there: from here on it runs as eager runs it, this call included, unless
/// that would write twice.
void Function::run_without_stand_ins(Session& session, const Program& program) {
  session.note({.code = BreakCode::unsupported_op,
                .op = {},
                .where = {},
                .reason = "the callable asks for the memory of a tensor that is computed later",
                .hint = "ask with sinter::materialize(tensor), or read it with an operator"});
  eager_.store(true, std::memory_order_relaxed);
  const auto refused = [this](std::string_view after) {
    return UserError(fmt::format(
        "{}: the callable asks for the memory of a tensor that is computed later, after it has {}; this call ends "
        "here, later ones run as eager runs them. Ask with sinter::materialize(tensor), read it with an operator "
        "(item(), copy to another tensor), or compile the part around it",
        name_, after));
  };
  if (session.account().wrote) {
    session.finish();
    throw refused("written");
  }
  frontend::ClosedStorages kept;
  session.begin_again(kept);
  try {
    program.run(program.context, nullptr);
  } catch (const std::exception& error) {
    if (!frontend::is_memory_missing(error)) throw;
    throw refused("kept a tensor that it reads");
  }
  Counters::add(counters_.eager);
}

bool Function::rests() {
  int64_t left = resting_.load(std::memory_order_relaxed);
  while (left > 0) {
    if (resting_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

/// A program that does something new on every call is left to eager for longer and longer while the budget allows no
/// more.
bool Function::rest_after(const Session::Account& account) {
  constexpr int64_t longest_rest = 10;  // doublings
  const bool nothing_new = account.recorded == 0 && account.interpreted == 0 && !account.cut_off;
  if (nothing_new) {
    in_vain_.store(in_vain_.load(std::memory_order_relaxed) / 2, std::memory_order_relaxed);
  } else if (!budget_.allows_recording()) {
    const int64_t in_vain = in_vain_.fetch_add(1, std::memory_order_relaxed);
    resting_.store(int64_t{1} << std::min(in_vain, longest_rest), std::memory_order_relaxed);
  }
  return nothing_new;
}

/// A call that has come to its end.
void Function::count(const Session::Account& account, bool nothing_new) {
  if (account.passes > 0) passes_.fetch_add(account.passes, std::memory_order_relaxed);
  const bool replayed = nothing_new && (account.replayed > 0 || account.at_once == 0);
  Counters::add(replayed ? counters_.replayed : account.recorded > 0 ? counters_.recorded : counters_.eager);
}

Report Function::report() const {
  Report report{
      .function = name_,
      .mode = {},
      .entries = paths_->reports(),
      .failed_at = findings_.failed_at(),
      .notes = {trusted_ != nullptr ? trusted_->text() : "checked: the callable's host code runs on every call"}};
  if (const int64_t passes = passes_.load(std::memory_order_relaxed); passes > 0) {
    report.notes.push_back(std::to_string(passes) + " backward passes were answered without autograd's engine");
  }
  report.notes.push_back(budget_.text());
  if (auto finding = trial_.finding(); !finding.empty()) report.notes.push_back(std::move(finding));
  for (auto& note : paths_->notes()) report.notes.push_back(std::move(note));
  for (auto& note : findings_.notes()) report.notes.push_back(std::move(note));
  if (auto breaks = findings_.breaks(); !breaks.empty()) {
    EntryReport around;  // what runs between the compiled segments
    around.signature = name_;
    for (const GraphBreak& reason : breaks) {
      if (reason.code == BreakCode::compile_failed) around.internal_error = reason.reason;
    }
    around.breaks = std::move(breaks);
    report.entries.push_back(std::move(around));
  }
  return report;
}

}  // namespace sinter::detail
