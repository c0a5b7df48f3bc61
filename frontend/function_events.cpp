#include "frontend/events.h"
#include "frontend/function.h"

/// What Function tells Options::on_event, and counts in Stats.
namespace sinter::detail {

void Function::note_event(Call& call, std::string signature,
                          std::variant<GraphBreak, Recompilation, LimitReached> what) {
  if (std::holds_alternative<GraphBreak>(what)) frontend::Counters::add(counters_.breaks);
  if (std::holds_alternative<Recompilation>(what)) frontend::Counters::add(counters_.recompilations);
  if (!options_.on_event) return;
  call.events.push_back({.function = name_, .signature = std::move(signature), .what = std::move(what)});
}

void Function::note_break(Call& call, const Entry& entry) {
  if (auto reason = entry.first_break()) note_event(call, entry.guards().signature(), std::move(*reason));
}

void Function::note_recompilation(Call& call, const Entry& entry, std::vector<GuardMiss> because) {
  if (!entry.compiled()) return note_break(call, entry);
  if (because.empty()) return;
  note_event(call, entry.guards().signature(), Recompilation{.because = std::move(because)});
}

void Function::tell(const std::vector<Event>& events) {
  const auto note_failure = [this](const std::string& what) {
    {
      const std::lock_guard lock(notes_);
      if (std::exchange(callback_threw_, true)) return;
    }
    add_note("on_event threw: " + what);
  };
  frontend::tell(options_.on_event, events, note_failure);
}

}  // namespace sinter::detail
