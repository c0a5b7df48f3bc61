#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/trace/path_family.h"

namespace sinter::frontend {

/// What the recorded paths of one tree have in common but for sizes, so that paths for further sizes are added without
/// being recorded. Thread-safe.
class PathFamilies {
 public:
  /// A path was recorded to its end for the first time.
  void add(PathNode& end);
  /// Adds the steps that follow behind `at` in a call that takes these tensors next, as far as a family tells (see
  /// PathFamily::next). False where none does.
  [[nodiscard]] bool grow(PathTree& tree, PathNode& at, const c10::OperatorHandle& op,
                          std::span<const TraceValue* const> taken, std::span<const int64_t> vouched);

  /// The sizes that paths of these operators (PathHash) differ in: "s0: size[0] of tensor 0 of operator 1, aten::relu".
  [[nodiscard]] std::vector<std::string> sizes(size_t operators) const;
  /// Why paths of equal operators are no families.
  [[nodiscard]] std::vector<std::string> refusals() const;

 private:
  static constexpr size_t max_samples = 8;
  static constexpr size_t max_groups = 256;

  /// Paths of the same operators.
  struct Group {
    std::vector<PathNode*> ends;               ///< of those that are compared; at most max_samples
    std::shared_ptr<const PathFamily> family;  ///< null before there are two, and where they are none
    std::string refusal;                       ///< why they are none; or empty
  };

  void solve(Group& group);
  static void finish(PathNode& end, const Group& group);

  mutable std::mutex mutex_;
  std::unordered_map<size_t, Group> groups_;  ///< by the hash of their operators
};

}  // namespace sinter::frontend
