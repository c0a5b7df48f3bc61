#pragma once

#include <cstdint>
#include <string>

#include "frontend/command/target.h"

namespace sinter::command {

/// What became of one model file that was run eager and compiled, call by call, on the same inputs and seeds.
struct FileVerdict {
  enum class Outcome : uint8_t {
    agrees,        ///< every call gave eager's result and writes, and later calls were replayed
    ran_eager,     ///< the same, but a part of it ran as eager runs it; `reason` is the break
    eager_throws,  ///< LibTorch refuses the operator here, compiled or not
    refused,       ///< Sinter cannot read or run the file
    unstable,      ///< a call differs, but eager differs from itself as well
    differs,       ///< `reason` says in what
    ended,         ///< the process ended or took too long
  };
  Outcome outcome = Outcome::agrees;
  std::string reason;
  int64_t replays = 0;
};

/// "agrees", "ran eager", ...
[[nodiscard]] std::string name_of(FileVerdict::Outcome outcome);
/// The reverse. Throws UserError for other text.
[[nodiscard]] FileVerdict::Outcome outcome_named(const std::string& name);

/// Calls the file `calls` times. Every second call from the third on is given other numbers, where eager takes them, so
/// that a replay that only repeats what was recorded is found. `values`: compare elements, not only dtypes and sizes.
[[nodiscard]] FileVerdict check_file(const TargetOptions& options, int64_t calls, bool values);

}  // namespace sinter::command
