#include "frontend/replay/findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/report/events.h"

namespace sinter::frontend {
namespace {

bool is_same(const GraphBreak& a, const GraphBreak& b) {
  return a.code == b.code && a.op == b.op && a.where == b.where && a.reason == b.reason;
}

}  // namespace

void Findings::note(GraphBreak reason, News& news) {
  {
    const std::lock_guard lock(mutex_);
    const auto same = [&](const GraphBreak& known) { return is_same(known, reason); };
    if (std::ranges::none_of(breaks_, same)) {
      breaks_.push_back(reason);
      news.emplace_back(reason);
      Counters::add(counters_.breaks);
    }
  }
  if (options_.fullgraph) throw Refused(fmt::format("{}: fullgraph: {}", function_, one_line(reason)));
}

void Findings::note(Recompilation divergence, News& news) {
  Counters::add(counters_.recompilations);
  {
    const std::lock_guard lock(mutex_);
    if (++divergences_ <= max_divergences) {
      for (const GuardMiss& miss : divergence.because) {
        add_note(fmt::format("another branch: {} was {}, is {}", miss.guard, miss.was, miss.is));
      }
    }
  }
  news.emplace_back(std::move(divergence));
}

void Findings::add_note(std::string text) {
  if (std::ranges::find(notes_, text) == notes_.end()) notes_.push_back(std::move(text));
}

void Findings::tell(News news, const std::string& signature) {
  if (!options_.on_event) return;
  const auto note_failure = [this](const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(callback_threw_, true)) add_note("on_event threw: " + what);
  };
  std::vector<Event> events;
  for (auto& what : news) events.push_back({.function = function_, .signature = signature, .what = std::move(what)});
  frontend::tell(options_.on_event, events, note_failure);
}

void Findings::note_failure(std::string place) {
  if (place.empty()) return;
  const std::lock_guard lock(mutex_);
  failed_at_ = std::move(place);
}

std::string Findings::failed_at() const {
  const std::lock_guard lock(mutex_);
  return failed_at_;
}

std::vector<GraphBreak> Findings::breaks() const {
  const std::lock_guard lock(mutex_);
  return breaks_;
}

std::vector<std::string> Findings::notes() const {
  const std::lock_guard lock(mutex_);
  auto notes = notes_;
  if (divergences_ > max_divergences) notes.push_back(fmt::format("{} more branches", divergences_ - max_divergences));
  return notes;
}

}  // namespace sinter::frontend
