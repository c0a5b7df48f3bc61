#pragma once

#include <set>
#include <string>
#include <string_view>

namespace sinter {

/// Bugs that can be planted in the compiler, to show that each is noticed: `SINTER_FAULT=kernel_text program`. Used by
/// the tests, and by whoever wants to see what a failure looks like. Immutable, so free to share.
class Faults {
 public:
  /// Parses the variable's value, a list of names separated by commas. Names nobody asks about have no effect.
  explicit Faults(std::string_view names);

  /// The process's own setting, read from the environment once.
  [[nodiscard]] static const Faults& environment();

  /// True when `name` was planted. The names in use:
  ///   "kernel_text"  the text of every kernel has a line no compiler takes
  ///   "lost_op"      every kernel leaves out its last operation, where the types allow it
  ///   "run"          every compiled segment throws where it would begin to run
  ///   "hang_at_FILE" `sinter check-files` never ends with this file of the folder
  [[nodiscard]] bool planted(std::string_view name) const { return names_.contains(name); }

 private:
  std::set<std::string, std::less<>> names_;
};

}  // namespace sinter
