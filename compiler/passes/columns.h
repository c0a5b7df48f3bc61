#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/ir/placed_view.h"

/// Row-major matrices that lie in memory as columns of a wider one.
namespace sinter::passes {

/// Columns `begin` to `begin + width`, more than one, of a row-major matrix with `pitch` elements a row. Where there is
/// one row alone, a pitch of `width` leaves the strides of views as they are.
struct Columns {
  int64_t begin = 0;
  int64_t width = 0;
  int64_t pitch = 0;
};

/// True when a view of a row-major matrix with `width` elements a row can be one of columns of a wider matrix: each
/// dim steps whole rows, or stays, together with the others that do not, within one row.
[[nodiscard]] bool keeps_to_columns(const ir::PlacedView& view, int64_t width);

/// The same elements where the matrix lies as columns. Its strides have the order they had: equal ones stay equal,
/// greater ones greater. Needs: keeps_to_columns.
[[nodiscard]] ir::PlacedView among_columns(ir::PlacedView view, const Columns& columns);

/// What the users of a matrix need, should it become columns of a wider one.
enum class ColumnsNeed : uint8_t {
  nothing,     ///< they read it through views
  fused_copy,  ///< a copy that kernels make together with what reads it, or in place of a copy that is made anyway
  own_copy,    ///< a copy that is a kernel of its own, for a call or an output
};

/// For the given values, which are row-major matrices in memory of their own, what their users need. By ValueId.
[[nodiscard]] std::vector<ColumnsNeed> columns_needs(const ir::Graph& graph, const std::vector<bool>& matrices);

}  // namespace sinter::passes
