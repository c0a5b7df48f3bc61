#include "compiler/passes/reduction_rules.h"

#include <algorithm>
#include <numeric>

#include "compiler/passes/pointwise.h"
#include "compiler/passes/reduction_shape.h"

namespace sinter::passes {

using namespace ir;

namespace {

constexpr int64_t fewest_rows = 32;         ///< blocks below which most of the device idles
constexpr int64_t small_operand = 16384;    ///< elements that few blocks get through at once
constexpr int64_t fewest_rows_on_cpu = 64;  ///< that keep the threads of a CPU busy
constexpr int64_t rows_across = 32;         ///< of a block, where neighbours in memory belong to different rows
constexpr int64_t piece_bytes = 32;         ///< of neighbours that belong together: memory hands out as many at once

/// True when each row is one piece of memory.
bool is_whole_row(const ReductionShape& shape) { return !shape.across && shape.run == shape.points; }

std::optional<uint32_t> named_dim(const Arg& arg, size_t rank) {
  const auto* number = std::get_if<int64_t>(&arg.data);
  if (number == nullptr) return std::nullopt;
  const auto count = static_cast<int64_t>(rank);
  const int64_t dim = *number < 0 ? *number + count : *number;
  if (dim < 0 || dim >= count) return std::nullopt;
  return static_cast<uint32_t>(dim);
}

}  // namespace

bool worth_generating(const PassContext& context, const Type& operand, const std::vector<uint32_t>& dims) {
  const bool cuda = context.device.backend == Backend::cuda;
  if (operand.device.kind != (cuda ? Device::Kind::cuda : Device::Kind::cpu)) return false;
  if (!operand.is_static() || operand.numel() == 0) return false;
  const auto shape = reduction_shape(operand, dims);
  if (!shape || shape->points < 2) return false;
  const bool small = operand.numel() <= small_operand;
  if (!cuda) return is_whole_row(*shape) && (small || shape->rows >= fewest_rows_on_cpu);
  const auto split = reduction_split(operand, dims, context.device);
  const bool by_lines = split && !split->later.empty();  // which read whole lines of memory, whatever a row has of each
  if (!small && !by_lines && shape->piece * bytes_of(operand.dtype) < piece_bytes) return false;
  if (small || split) return true;
  if (shape->points > longest_row) return false;
  const int64_t blocks = shape->across ? shape->rows / rows_across : shape->rows;
  return blocks >= fewest_rows || !gains_by_splitting(operand, *shape, context.device);
}

std::optional<std::vector<uint32_t>> named_dims(const Arg& arg, size_t rank) {
  const ArgList* list = arg.list();
  if (arg.is_none() || (list != nullptr && list->empty())) return first_dims(rank);
  std::vector<uint32_t> dims;
  for (const Arg& name : list == nullptr ? ArgList{arg} : *list) {
    const auto dim = named_dim(name, rank);
    if (!dim) return std::nullopt;
    dims.push_back(*dim);
  }
  std::ranges::sort(dims);
  if (std::ranges::adjacent_find(dims) != dims.end()) return std::nullopt;
  return dims;
}

std::vector<uint32_t> first_dims(size_t count) { return last_dims(count, count); }

std::vector<uint32_t> last_dims(size_t count, size_t rank) {
  std::vector<uint32_t> dims(count);
  std::iota(dims.begin(), dims.end(), static_cast<uint32_t>(rank - count));
  return dims;
}

int64_t elements_along(const Type& type, const std::vector<uint32_t>& dims) {
  int64_t count = 1;
  for (const uint32_t dim : dims) count *= type.sizes[dim].value();
  return count;
}

double mean_factor(const Type& operand, const std::vector<uint32_t>& dims, DType compute) {
  const int64_t elements = operand.numel();
  const int64_t rows = elements / elements_along(operand, dims);
  if (compute == DType::f64) return static_cast<double>(rows) / static_cast<double>(elements);
  return static_cast<double>(static_cast<float>(rows) / static_cast<float>(elements));
}

std::vector<Dim> kept_sizes(const Type& type, const std::vector<uint32_t>& dims) {
  std::vector<Dim> sizes = type.sizes;
  for (const uint32_t dim : dims) sizes[dim] = 1;
  return sizes;
}

bool is_reduced(const std::vector<Dim>& sizes, const Type& operand, const std::vector<uint32_t>& dims) {
  if (sizes == kept_sizes(operand, dims)) return true;
  std::vector<Dim> left;
  for (size_t dim = 0; dim < operand.rank(); ++dim) {
    if (!has_dim(dims, dim)) left.push_back(operand.sizes[dim]);
  }
  return sizes == left;
}

bool writes_results(const Graph& graph, const CallSite& site) {
  return std::ranges::all_of(
      site.results, [&](const ObservedResult& result) { return !result.used || is_kernel_result(graph, result.type); });
}

bool reads_tensor(const Graph& graph, const Arg& arg) {
  return arg.value() != nullptr && is_kernel_operand(graph, arg);
}

bool reads_optional_tensor(const Graph& graph, const Arg& arg) { return arg.is_none() || reads_tensor(graph, arg); }

}  // namespace sinter::passes
