#pragma once

#include <string_view>
#include <vector>

/// The programs of the suite that are not answered compiled on the CPU by their third call, and why: the reviewed
/// lists.
namespace sinter::test::hostile {

struct Reason {
  std::string_view reason;
  std::vector<std::string_view> programs;
};

/// Those that never are.
[[nodiscard]] std::vector<Reason> never_replayed();

/// Those that are later.
[[nodiscard]] std::vector<Reason> replayed_late();

[[nodiscard]] bool names(const std::vector<Reason>& list, std::string_view program);

}  // namespace sinter::test::hostile
