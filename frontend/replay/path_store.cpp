#include "frontend/replay/path_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/support/errors.h"
#include "frontend/replay/compiled_path.h"
#include "frontend/report/entry_times.h"
#include "frontend/report/events.h"
#include "frontend/trace/path_families.h"
#include "runtime/stopwatch.h"

namespace sinter::frontend {
namespace {

GraphBreak failure_of(const InternalError& error) {
  return {.code = BreakCode::compile_failed,
          .op = {},
          .where = error.where(),
          .reason = error.what() + saved_text(error),
          .hint = "this is a bug in Sinter"};
}

}  // namespace

PathStore::PathStore(const Options& options, const std::vector<NamedModule>& modules, std::string function,
                     Counters& counters, Budget& budget, Findings& findings)
    : options_(options), function_(std::move(function)), counters_(counters), budget_(budget), findings_(findings) {
  for (const auto& named : named_tensors(modules)) {
    if (const auto tensor = named.tensor.lock()) modules_.emplace(tensor.get(), named.module);
  }
}

TensorTable::Room PathStore::take_room() {
  const std::lock_guard lock(rooms_mutex_);
  if (rooms_.empty()) return {};
  TensorTable::Room room = std::move(rooms_.back());
  rooms_.pop_back();
  return room;
}

void PathStore::keep_room(TensorTable::Room room) {
  const std::lock_guard lock(rooms_mutex_);
  if (rooms_.size() < max_rooms && room.memories.capacity() <= max_room) rooms_.push_back(std::move(room));
}

const OpTraits& PathStore::traits(const c10::OperatorHandle& op) {
  const std::lock_guard lock(mutex_);
  auto& known = traits_[&op.schema()];
  if (known == nullptr) known = std::make_unique<OpTraits>(facts_.of(op));
  return *known;
}

std::shared_ptr<PathTree> PathStore::tree(const Modes& settings) {
  const std::lock_guard lock(mutex_);
  make_room_for_steps();
  for (const auto& [known, tree] : trees_) {
    if (known == settings) return tree;
  }
  return trees_.emplace_back(settings, std::make_shared<PathTree>()).second;
}

/// Segments that are under way keep their trees.
void PathStore::make_room_for_steps() {
  size_t steps = 0;
  for (const auto& [settings, tree] : trees_) steps += tree->size();
  if (steps < max_steps) return;
  evicted_ += static_cast<int64_t>(paths_.size());
  trees_.clear();
  paths_.clear();
}

void PathStore::note_end(PathTree& tree, PathNode& end, std::span<const TraceMemoryId> escaped,
                         std::string_view reason) {
  bool first = false;
  {
    const std::lock_guard lock(end.ending.mutex);
    end.ending.add(escaped, reason);
    first = ++end.ending.visits == 1;
  }
  if (!first || end.depth == 0 || !options_.dynamic.value_or(true)) return;
  const runtime::Stopwatch stopwatch;
  tree.families().add(end);
  note_recording(stopwatch.seconds());
}

bool PathStore::grow(PathTree& tree, PathNode& at, const c10::OperatorHandle& op,
                     std::span<const TraceValue* const> taken, std::span<const int64_t> vouched) {
  if (!options_.dynamic.value_or(true) || !budget_.allows_recording()) return false;
  const runtime::Stopwatch stopwatch;
  const bool grown = tree.families().grow(tree, at, op, taken, vouched);
  note_recording(stopwatch.seconds());
  return grown;
}

void PathStore::note_recording(double seconds) {
  budget_.note_recording(seconds);
  recorded_.fetch_add(seconds, std::memory_order_relaxed);
}

double PathStore::take_recorded() {
  return recorded_.load(std::memory_order_relaxed) > 0 ? recorded_.exchange(0, std::memory_order_relaxed) : 0;
}

void PathStore::exclude(const c10::OperatorHandle& op) {
  const std::lock_guard lock(mutex_);
  traits_.at(&op.schema())->excluded.store(true, std::memory_order_relaxed);
}

std::string PathStore::module_of(const at::Tensor& tensor) const {
  const auto found = modules_.find(tensor.unsafeGetTensorImpl());
  return found == modules_.end() ? std::string() : found->second;
}

std::shared_ptr<CompiledPath> PathStore::compiled(const Matched& segment, News& news) {
  Ending& ending = segment.end.ending;
  const auto known = ending.compiled.load();
  const auto moved = known != nullptr ? known->moved_states(segment.table) : std::vector<TraceValueId>();
  if (known != nullptr && moved.empty() && known->gives(segment.escaped) && known->takes(segment.numbers)) {
    known->note_use(clock_.fetch_add(1, std::memory_order_relaxed));
    return known;
  }
  if (segment.reason.empty()) return nullptr;
  const std::unique_lock lock(ending.mutex, std::try_to_lock);
  if (!lock) return nullptr;
  ending.add(segment.escaped, segment.reason);
  ending.no_states.insert(ending.no_states.end(), moved.begin(), moved.end());
  if (++ending.visits == 1 || !ending.refusal.empty()) return nullptr;
  auto path = compile(segment, news);
  // Another thread may have made one more number live meanwhile.
  return path != nullptr && path->takes(segment.numbers) ? path : nullptr;
}

std::shared_ptr<CompiledPath> PathStore::compile(const Matched& segment, News& news) {
  if (!budget_.allows_compilation(segment.end.ending.instance)) return nullptr;
  const runtime::Stopwatch stopwatch;
  auto path = build(segment, news);
  budget_.note_compilation(stopwatch.seconds());
  return path;
}

/// Null where that fails, which is not tried again.
std::shared_ptr<CompiledPath> PathStore::build(const Matched& segment, News& news) {
  const CompileTimer timer(counters_);
  const auto times = std::make_shared<EntryTimes>(CompileLog::of_process(), function_);
  PathNode& end = segment.end;
  try {
    const PathHash hash = PathHash::of(steps_to(end));
    const bool generic_sizes = options_.dynamic.value_or(came_for_other_sizes(hash));
    const PathSettings settings{options_, function_, times, pools_, generic_sizes, states_of(segment)};
    auto path = std::make_shared<CompiledPath>(end, settings, segment.table);
    times->finish(path->report().signature);
    path->note_use(clock_.fetch_add(1, std::memory_order_relaxed));
    end.ending.compiled.store(path);
    if (path->on_gpu()) uses_gpu_.store(true, std::memory_order_relaxed);
    keep({segment.tree, &end, path, hash.operators, end.ending.instance});
    Counters::add(end.ending.instance ? counters_.shapes : counters_.entries);
    return path;
  } catch (const InternalError& error) {
    times->finish("not compiled");
    if (options_.strict) throw;
    end.ending.refusal = error.what();
    findings_.note(failure_of(error), news);
    return nullptr;
  }
}

void PathStore::note_failed_run(const Matched& segment, const std::string& error, News& news) {
  const InternalError failure("run", "the compiled segment throws, its operators alone do not: " + error);
  if (options_.strict) throw failure;
  give_up(segment.end, failure.what());
  findings_.note(failure_of(failure), news);
}

/// Once it has failed too often: a device may have been short of something for a while.
void PathStore::give_up(PathNode& end, std::string why) {
  {
    const std::lock_guard lock(end.ending.mutex);
    if (++end.ending.failed_runs < most_failed_runs) return;
    end.ending.refusal = std::move(why);
    end.ending.compiled.store(nullptr);
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(paths_, [&](const Kept& known) { return known.end == &end; });
}

/// With Options::freeze: what the segment reads that was neither given to the call nor made by it, and never moved.
std::vector<TraceValueId> PathStore::states_of(const Matched& segment) const {
  std::vector<TraceValueId> states;
  if (!options_.freeze) return states;
  const TensorTable& table = segment.table;
  for (uint32_t i = 0; i < table.size(); ++i) {
    const TraceValue& value = table.value({i});
    const TensorTable::Memory& memory = table.memories()[value.memory.index];
    if (value.from != TraceValue::From::input || table.known(value.memory).fresh || memory.written) continue;
    const bool given =
        std::ranges::find(segment.arguments, memory.held.unsafeGetStorageImpl()) != segment.arguments.end();
    const auto& moved = segment.end.ending.no_states;
    if (!given && std::ranges::find(moved, TraceValueId{i}) == moved.end()) states.push_back({i});
  }
  return states;
}

/// True where the same operators were compiled for other sizes.
bool PathStore::came_for_other_sizes(const PathHash& hash) {
  const std::lock_guard lock(mutex_);
  const auto [known, first] = sizes_.emplace(hash.operators, hash.sizes);
  return !first && known->second != hash.sizes;
}

/// In place of what the place had before, and, where there are too many, of the one that was used longest ago.
void PathStore::keep(Kept kept) {
  const std::lock_guard lock(mutex_);
  std::erase_if(paths_, [&](const Kept& known) { return known.end == kept.end; });
  paths_.push_back(std::move(kept));
  if (paths_.size() <= max_paths) return;
  const auto oldest = std::ranges::min_element(paths_, {}, [](const Kept& known) { return known.path->last_use(); });
  oldest->end->ending.compiled.store(nullptr);
  paths_.erase(oldest);
  ++evicted_;
}

/// What was compiled without a recording is told with the first recorded path of its operators.
std::vector<EntryReport> PathStore::reports() const {
  const std::lock_guard lock(mutex_);
  std::vector<EntryReport> reports;
  std::unordered_map<size_t, size_t> families;  // by operators: where the first of them is told
  for (const Kept& kept : paths_) {
    EntryReport report = kept.path->report();
    const auto [first, is_new] = families.emplace(kept.operators, reports.size());
    if (!is_new && kept.instance) {
      add_instance(reports[first->second], report);
      continue;
    }
    if (is_new) {
      report.instantiations = kept.instance ? 1 : 0;
      report.dynamic = kept.tree->families().sizes(kept.operators);
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

void PathStore::add_instance(EntryReport& family, const EntryReport& instance) {
  ++family.instantiations;
  for (const PhaseTime& phase : instance.phases) family.instantiation_seconds += phase.seconds;
  family.built_for_instantiations += instance.kernel_origins().built;
  family.recorded_instantiations += instance.graphs;
  family.replays += instance.replays;
}

std::vector<std::string> PathStore::notes() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> notes;
  if (evicted_ > 0) notes.push_back(fmt::format("{} compiled segments made room for others", evicted_));
  for (const auto& [settings, tree] : trees_) {
    for (const std::string& reason : tree->families().refusals()) {
      notes.push_back("every size is recorded for itself: " + reason);
    }
  }
  return notes;
}

}  // namespace sinter::frontend
