#pragma once

#include <functional>
#include <span>
#include <string>

#include "compiler/support/errors.h"
#include "sinter/events.h"

namespace sinter::frontend {

/// A break in one line: code, operator, place, reason and hint, as far as there are.
[[nodiscard]] std::string one_line(const GraphBreak& reason);

/// Where the file lies that reproduces a failure: " (saved: dump/fuse.ir)", or nothing.
[[nodiscard]] std::string saved_text(const InternalError& error);

/// Calls back with each event, in order. What the callback throws goes to `note_failure`, in words.
void tell(const std::function<void(const Event&)>& callback, std::span<const Event> events,
          const std::function<void(const std::string&)>& note_failure);

}  // namespace sinter::frontend
