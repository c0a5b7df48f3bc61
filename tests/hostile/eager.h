#pragma once

#include <string_view>
#include <vector>

/// The programs of the suite that are not compiled, or not all of whose calls are, and why: the reviewed lists.
namespace sinter::test::hostile {

struct EagerReason {
  std::string_view reason;
  std::vector<std::string_view> programs;
};

[[nodiscard]] std::vector<EagerReason> eager_reasons();

/// Those that never replay on the CPU where replays run the host code (Replay::checked).
[[nodiscard]] std::vector<EagerReason> checked_eager_reasons();

}  // namespace sinter::test::hostile
