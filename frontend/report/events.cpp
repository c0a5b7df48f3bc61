#include "frontend/report/events.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ostream>

#include "sinter/events.h"

namespace sinter {
namespace {

std::string text_of(const GraphBreak& reason) { return "break: " + frontend::one_line(reason); }

std::string text_of(const Recompilation& recompilation) {
  std::vector<std::string> misses;
  for (const auto& miss : recompilation.because) {
    misses.push_back(fmt::format("{} was {}, is {}", miss.guard, miss.was, miss.is));
  }
  return fmt::format("recompiled: {}", fmt::join(misses, "; "));
}

}  // namespace

std::string frontend::one_line(const GraphBreak& reason) {
  std::string text = name(reason.code);
  if (!reason.op.empty()) text += " " + reason.op;
  if (!reason.where.empty()) text += " at " + reason.where;
  text += ": " + reason.reason;
  if (!reason.hint.empty()) text += "; " + reason.hint;
  return text;
}

std::string frontend::saved_text(const InternalError& error) {
  return error.artifact().empty() ? std::string() : fmt::format(" (saved: {})", error.artifact());
}

void frontend::tell(const std::function<void(const Event&)>& callback, std::span<const Event> events,
                    const std::function<void(const std::string&)>& note_failure) {
  for (const Event& event : events) {
    try {
      callback(event);
    } catch (const std::exception& error) {
      note_failure(error.what());
    } catch (...) {
      note_failure("something that is no std::exception");
    }
  }
}

std::string Event::text() const {
  const auto detail = std::visit([](const auto& alternative) { return text_of(alternative); }, what);
  return signature.empty() ? fmt::format("{}  {}", function, detail)
                           : fmt::format("{}  {}  {}", function, signature, detail);
}

std::ostream& operator<<(std::ostream& out, const Event& event) { return out << event.text(); }

}  // namespace sinter
