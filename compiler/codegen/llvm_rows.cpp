#include "compiler/codegen/llvm_rows.h"

#include <algorithm>

#include "compiler/codegen/llvm_row_text.h"

namespace sinter::codegen {

namespace {

using kernel::Kernel;
using kernel::Slot;

constexpr int64_t most_vectors = 4;          ///< side by side: enough accumulators to hide the latency of an addition
constexpr int64_t kept_bytes = 64 << 10;     ///< of one thread's stack, for elements that later passes need
constexpr int64_t cached_bytes = 256 << 10;  ///< rows that several passes read, of a cache near the core

/// Bytes that are kept of one point of a row under `Keep::only_dear`.
int64_t kept_bytes_of_point(const Kernel& kernel) {
  const RowPasses passes = row_passes(kernel, operands_of(kernel), Keep::only_dear);
  const std::vector<Slot> memory = passes.shared_memory(kernel);
  int64_t bytes = 0;
  for (Slot slot = 0; slot < kernel.body.size(); ++slot) {
    if (passes.kept[slot] && memory[slot] == slot) bytes += ir::bytes_of(kernel.body[slot].dtype);
  }
  return bytes;
}

/// Bytes that one point of a row reads and writes.
int64_t touched_bytes_of_point(const Kernel& kernel) {
  int64_t bytes = 0;
  for (const kernel::Instruction& instruction : kernel.body) {
    const auto* load = std::get_if<kernel::Load>(&instruction.operation);
    if (load == nullptr || kernel.params[load->param].role == kernel::Param::Role::host_scalar) continue;
    if (varies_in_row(kernel, load->index)) bytes += ir::bytes_of(kernel.params[load->param].dtype);
  }
  return std::max<int64_t>(bytes, 1);
}

/// Vectors of rows that go through their points together: several where what they read stays in the cache from pass to
/// pass.
int64_t vectors_across(const Kernel& kernel, int64_t lanes, int64_t kept_of_point) {
  const size_t passes = row_passes(kernel, operands_of(kernel), Keep::nothing).passes.size();
  const int64_t points = kernel.row_points() * lanes;
  int64_t vectors = most_vectors;
  const auto fits = [&] {
    const bool cached = passes == 1 || points * vectors * touched_bytes_of_point(kernel) <= cached_bytes;
    return cached && points * vectors * kept_of_point <= kept_bytes;
  };
  while (vectors > 1 && !fits()) vectors /= 2;
  return vectors;
}

/// Points of a row whose lines are made of whole vectors.
int64_t padded_row(const Kernel& kernel, int64_t lanes) {
  const int64_t line = make_nest_along_rows(kernel, lanes).inner();
  return kernel.row_points() / line * ((line + lanes - 1) / lanes * lanes);
}

}  // namespace

LlvmRowSchedule llvm_row_schedule(const Kernel& kernel, int vector_bits) {
  LlvmRowSchedule schedule;
  schedule.across = runs_across_rows(kernel);
  schedule.lanes = choose_lanes(kernel, vector_bits, schedule.across || reads_neighbours(kernel));
  const int64_t kept = kept_bytes_of_point(kernel);
  schedule.unroll = schedule.across ? vectors_across(kernel, schedule.lanes, kept) : most_vectors;
  schedule.kept_points =
      schedule.across ? kernel.row_points() * schedule.lanes * schedule.unroll : padded_row(kernel, schedule.lanes);
  if (schedule.kept_points * kept <= kept_bytes) schedule.keep = Keep::only_dear;
  return schedule;
}

LlvmRowFunction llvm_row_function(const Kernel& kernel, int vector_bits) {
  const LlvmRowSchedule schedule = llvm_row_schedule(kernel, vector_bits);
  return schedule.across ? llvm_function_across_rows(kernel, vector_bits, schedule)
                         : llvm_function_along_rows(kernel, vector_bits, schedule);
}

}  // namespace sinter::codegen
