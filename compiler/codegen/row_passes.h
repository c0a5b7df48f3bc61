#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace sinter::codegen {

using kernel::Operands;

/// What is kept of a row's elements from one pass to the next; the rest is computed again.
enum class Keep : uint8_t {
  nothing,    ///< rows are read again
  small,      ///< what was loaded, and halves that were computed
  dear,       ///< results of expensive ops too
  only_dear,  ///< these alone
};

/// One time through a row.
struct RowPass {
  std::vector<kernel::Slot> elements;    ///< loaded or computed at every point, in order
  std::vector<kernel::Slot> reductions;  ///< known when the pass ends
  std::vector<kernel::Slot> row_values;  ///< computed after it, once for the row
  std::vector<size_t> stores;            ///< of elements
};

/// What a kernel with reduced loops does for one row.
struct RowPasses {
  std::vector<kernel::Slot> row_values;  ///< computed before the first pass
  std::vector<RowPass> passes;
  std::vector<size_t> row_stores;  ///< at the end, once for the row
  std::vector<bool> kept;          ///< by slot: elements of one pass that later ones need
  std::vector<size_t> last_need;   ///< by slot: of what is kept, the last pass that needs it

  /// By slot: the first slot whose memory may hold it too, for what was kept there is needed no more when the pass that
  /// computes it ends; itself where there is none. In that pass elements are read before any is kept.
  [[nodiscard]] std::vector<kernel::Slot> shared_memory(const kernel::Kernel& kernel) const;
  /// Bytes that are kept of one point of a row at one time, at most.
  [[nodiscard]] int64_t most_kept_bytes(const kernel::Kernel& kernel) const;
  /// Bytes of one point of a row that passes after the first one load, and need not wait for its reductions to do so.
  [[nodiscard]] int64_t bytes_loaded_later(const kernel::Kernel& kernel) const;
  /// Has the first pass load them, and keep them.
  void load_in_first(const kernel::Kernel& kernel);
};

/// Orders the work: a reduction belongs to the first pass in which its operand can be computed, and so does the store
/// of an element, unless it might overwrite what a later pass reads.
[[nodiscard]] RowPasses row_passes(const kernel::Kernel& kernel, const Operands& operands, Keep keep);

}  // namespace sinter::codegen
