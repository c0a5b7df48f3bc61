#pragma once

#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/ir/host_tensor.h"
#include "compiler/kernel/lower.h"
#include "tests/llvm/memory.h"

/// Kernels that reduce, for every back end.
namespace sinter::test {

/// A body on device {D} with {R} rows of {N} elements of dtype {T}, computed in {C}; {N2} is 2 * N.
struct RowBody {
  std::string name;
  std::string text;
  int64_t longest = std::numeric_limits<int64_t>::max();  ///< elements of a row beyond which rounding shows
};
[[nodiscard]] const std::vector<RowBody>& row_bodies();

struct RowSizes {
  int64_t rows;
  int64_t length;
};
/// Parts of a warp, whole warps, blocks with full and partial warps, rows that are read again, tails of every kind.
[[nodiscard]] std::span<const RowSizes> row_sizes();

/// One kernel with what it is to give, and memory for its params.
struct RowTrial {
  std::string name;
  ir::Graph graph;
  kernel::Kernel kernel;
  std::vector<ir::HostTensor> outputs;  ///< as the interpreter gives them
  std::vector<Buffer> params;           ///< inputs, then outputs
};

/// Changes an input before it becomes a param.
using ChangeInput = std::function<void(ir::HostTensor& input)>;

/// A trial of a graph's text. Values come from the seed; memory has room for `room` elements behind the last.
[[nodiscard]] RowTrial row_trial(std::string name, const std::string& text, uint64_t seed, int64_t room = 0,
                                 const ChangeInput& change = nullptr);

[[nodiscard]] std::string text_of(const RowBody& body, RowSizes sizes, std::string_view dtype,
                                  std::string_view computed, std::string_view device);

/// Calls `visit` with all bodies and sizes, in several dtypes.
void for_each_row_trial(std::string_view device,
                        const std::function<void(std::string name, const std::string& text)>& visit);

/// Where a run has left other outputs in the params than the interpreter gives; else nothing.
[[nodiscard]] std::string difference(const RowTrial& trial);

}  // namespace sinter::test
