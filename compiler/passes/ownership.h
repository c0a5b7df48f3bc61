#pragma once

#include <vector>

#include "compiler/ir/graph.h"

namespace sinter::passes {

/// Keeps apart what the caller gets: which values have memory that an output lies in, and which memory was there
/// before the call.
class Ownership {
 public:
  explicit Ownership(const ir::Graph& graph);

  /// True when uses of `value` may be given `replacement` (same type): no output then shares memory that eager kept
  /// apart.
  [[nodiscard]] bool can_replace(ir::ValueId value, ir::ValueId replacement) const;
  /// Told that the replacement was made.
  void replaced(ir::ValueId value, ir::ValueId replacement);

 private:
  const ir::Graph& graph_;
  std::vector<bool> in_output_;  ///< by value that is no view
};

}  // namespace sinter::passes
