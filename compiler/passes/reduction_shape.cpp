#include "compiler/passes/reduction_shape.h"

#include <algorithm>
#include <iterator>

#include "compiler/support/ceil_div.h"

namespace sinter::passes {
namespace {

using namespace ir;

constexpr int64_t large_operand = int64_t{1} << 18;  ///< elements below which a second kernel costs more than it saves
constexpr int64_t rows_of_a_block = 32;              ///< that run across memory
constexpr int64_t blocks_to_fill = 4;                ///< of each multiprocessor
constexpr int64_t blocks_of_columns = 16;            ///< where such rows are split: in turns, so that all end together
constexpr int64_t fewest_points = 64;                ///< of a part
constexpr double block_speed = 64e3;                 ///< bytes that one block goes through in a microsecond
constexpr double device_speed = 3e6;                 ///< and all of them together
constexpr double instruction_speed = 150e3;          ///< of a multiprocessor in a microsecond, all lanes together
constexpr double second_kernel = 3;                  ///< microseconds that it takes before it has done any work

constexpr int64_t bytes_of_a_line = 128;

/// Elements that lie next to each other in memory along dims of one kind, from the fastest dim on.
struct Run {
  int64_t length = 1;
  std::vector<uint32_t> dims;  ///< ascending
};

/// `from`: elements that lie together already.
Run run_of(const Type& type, const std::vector<uint32_t>& dims, bool reduced, int64_t from = 1) {
  Run run{.length = from, .dims = {}};
  for (bool grew = true; grew;) {
    grew = false;
    for (uint32_t d = 0; d < type.rank(); ++d) {
      const int64_t size = type.sizes[d].constant();
      if (size == 1 || has_dim(dims, d) != reduced || type.strides[d].constant() != run.length) continue;
      run.length *= size;
      run.dims.push_back(d);
      grew = true;
    }
  }
  std::ranges::sort(run.dims);
  return run;
}

/// The reduced dims longer than 1, those whose parts lie farthest apart first.
std::vector<uint32_t> outermost_first(const Type& type, std::vector<uint32_t> dims) {
  std::erase_if(dims, [&](uint32_t dim) { return type.sizes[dim] == Dim(1); });
  std::ranges::stable_sort(
      dims, [&](uint32_t a, uint32_t b) { return type.strides[a].constant() > type.strides[b].constant(); });
  return dims;
}

/// The least divisor of `size` that is at least `wanted`, or the largest one up to `most`.
int64_t divisor(int64_t size, int64_t wanted, int64_t most) {
  int64_t best = 1;
  for (int64_t parts = 2; parts <= most; ++parts) {
    if (size % parts != 0) continue;
    best = parts;
    if (parts >= wanted) break;
  }
  return best;
}

/// Rows of as many blocks of each multiprocessor.
int64_t rows_of_blocks(const DeviceInfo& device, int64_t blocks, bool across) {
  return device.multiprocessors * blocks * (across ? rows_of_a_block : 1);
}

/// The split of one dim into `wanted` parts, or as near as the dims' sizes allow.
ReductionSplit in_parts(const Type& operand, const std::vector<uint32_t>& dims, int64_t points, int64_t wanted) {
  const std::vector<uint32_t> outer = outermost_first(operand, dims);
  ReductionSplit best{.dim = outer.front()};
  for (const uint32_t dim : outer) {
    const int64_t size = operand.sizes[dim].constant();
    const int64_t parts = divisor(size, wanted, std::min(size, points / fewest_points));
    if (parts > best.parts) best = {.dim = dim, .parts = parts};
    if (best.parts >= wanted) break;
  }
  return best;
}

/// Where the elements of a row lie in runs that are shorter than a line of memory, and other rows between them: first
/// over the dims that go from run to run, then over those of a run. Nothing where rows lie otherwise.
std::optional<ReductionSplit> split_by_lines(const Type& operand, const ReductionShape& shape,
                                             const std::vector<uint32_t>& dims, const DeviceInfo& device) {
  if (shape.across || shape.run * bytes_of(operand.dtype) >= bytes_of_a_line) return std::nullopt;
  const Run run = run_of(operand, dims, true);
  const int64_t points = shape.points / run.length;
  if (points < fewest_points) return std::nullopt;
  std::vector<uint32_t> rest;
  std::ranges::set_difference(dims, run.dims, std::back_inserter(rest));
  if (run_of(operand, rest, false).length * bytes_of(operand.dtype) < bytes_of_a_line) return std::nullopt;
  const int64_t wanted = ceil_div(rows_of_blocks(device, blocks_of_columns, true), shape.rows * run.length);
  ReductionSplit split = in_parts(operand, rest, points, wanted);
  split.later = run.dims;
  return split;
}

}  // namespace

bool gains_by_splitting(const Type& operand, const ReductionShape& shape, const DeviceInfo& device,
                        int64_t instructions) {
  const int64_t rows = shape.across ? rows_of_a_block : 1;
  const auto block_elements = static_cast<double>(shape.points * rows);
  const auto elements = static_cast<double>(operand.numel());
  const auto bytes = static_cast<double>(bytes_of(operand.dtype));
  const auto computing = static_cast<double>(instructions) / instruction_speed;  // of an element, by one multiprocessor
  const auto turns = static_cast<double>(ceil_div(ceil_div(shape.rows, rows), device.multiprocessors));
  const double in_one = turns * block_elements * std::max(bytes / block_speed, computing);
  const double in_two = elements * std::max(bytes / device_speed, computing / device.multiprocessors) + second_kernel;
  return in_one > in_two;
}

bool has_dim(const std::vector<uint32_t>& dims, size_t dim) {
  return std::ranges::binary_search(dims, static_cast<uint32_t>(dim));
}

std::optional<ReductionShape> reduction_shape(const Type& operand, const std::vector<uint32_t>& dims) {
  ReductionShape shape;
  for (size_t d = 0; d < operand.rank(); ++d) {
    (has_dim(dims, d) ? shape.points : shape.rows) *= operand.sizes[d].constant();
  }
  const int64_t along = run_of(operand, dims, true).length;
  const int64_t across = run_of(operand, dims, false).length;
  if (along == 1 && across == 1) return std::nullopt;
  shape.across = across > along;
  shape.run = std::max(along, across);
  shape.piece = shape.across ? run_of(operand, dims, true, across).length : shape.run;
  return shape;
}

std::optional<ReductionSplit> reduction_split(const Type& operand, const std::vector<uint32_t>& dims,
                                              const DeviceInfo& device, int64_t instructions) {
  const auto shape = reduction_shape(operand, dims);
  if (!shape || shape->rows * shape->points < large_operand) return std::nullopt;
  if (auto lines = split_by_lines(operand, *shape, dims, device)) return lines;
  if (shape->rows * 2 > rows_of_blocks(device, blocks_to_fill, shape->across)) return std::nullopt;
  if (shape->points <= longest_row && !gains_by_splitting(operand, *shape, device, instructions)) {
    return std::nullopt;
  }
  const int64_t blocks = shape->across ? blocks_of_columns : blocks_to_fill;
  const int64_t wanted = ceil_div(rows_of_blocks(device, blocks, shape->across), shape->rows);
  const ReductionSplit parts = in_parts(operand, dims, shape->points, wanted);
  return parts.parts > 1 ? std::optional(parts) : std::nullopt;
}

}  // namespace sinter::passes
