#include "tests/emulator/warp.h"

#include <fmt/format.h>

#include <string_view>

namespace sinter::test {
namespace {

bool is_shuffle(WarpOp op) {
  return op == WarpOp::shuffle || op == WarpOp::shuffle_up || op == WarpOp::shuffle_down || op == WarpOp::shuffle_xor;
}

std::string_view cuda_name(WarpOp op) {
  switch (op) {
    case WarpOp::sync:
      return "__syncwarp";
    case WarpOp::shuffle:
      return "__shfl_sync";
    case WarpOp::shuffle_up:
      return "__shfl_up_sync";
    case WarpOp::shuffle_down:
      return "__shfl_down_sync";
    case WarpOp::shuffle_xor:
      return "__shfl_xor_sync";
    case WarpOp::ballot:
      return "__ballot_sync";
    case WarpOp::any:
      return "__any_sync";
    case WarpOp::all:
      return "__all_sync";
  }
  return {};
}

bool names(unsigned mask, unsigned lane) { return (mask >> lane & 1U) != 0; }

/// The lanes of the mask whose predicate holds.
unsigned ballot(const WarpCalls& calls, unsigned mask) {
  unsigned votes = 0;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    if (names(mask, lane) && calls[lane]->value != 0) votes |= 1U << lane;
  }
  return votes;
}

}  // namespace

std::string describe(const WarpCall& call) {
  return fmt::format("{} (line {}, mask {:#x})", cuda_name(call.op), call.line, call.mask);
}

std::string fault_of(const WarpCall& call, unsigned lane) {
  if (!names(call.mask, lane)) return fmt::format("the mask of {} does not name the lane that calls", describe(call));
  if (!is_shuffle(call.op)) return {};
  const unsigned width = call.width;
  if (width == 0 || width > lanes_per_warp || (width & (width - 1)) != 0) {
    return fmt::format("{} has width {}, which is no power of two up to 32", describe(call), width);
  }
  const unsigned source = source_lane(call, lane);
  if (!names(call.mask, source)) {
    return fmt::format("{} reads lane {}, which the mask does not name", describe(call), source);
  }
  return {};
}

bool same_operation(const WarpCall& a, const WarpCall& b) {
  return a.op == b.op && a.mask == b.mask && a.bytes == b.bytes && a.width == b.width;
}

unsigned source_lane(const WarpCall& call, unsigned lane) {
  const unsigned first = lane & ~(call.width - 1);
  const unsigned end = first + call.width;
  switch (call.op) {
    case WarpOp::shuffle:
      return first + (call.operand & (call.width - 1));
    case WarpOp::shuffle_up:
      return call.operand > lane - first ? lane : lane - call.operand;
    case WarpOp::shuffle_down:
      return call.operand >= end - lane ? lane : lane + call.operand;
    case WarpOp::shuffle_xor:
      return (lane ^ call.operand) >= end ? lane : lane ^ call.operand;
    default:
      return lane;
  }
}

uint64_t result_of(const WarpCalls& calls, unsigned lane) {
  const WarpCall& call = *calls[lane];
  switch (call.op) {
    case WarpOp::sync:
      return 0;
    case WarpOp::ballot:
      return ballot(calls, call.mask);
    case WarpOp::any:
      return ballot(calls, call.mask) != 0 ? 1 : 0;
    case WarpOp::all:
      return ballot(calls, call.mask) == call.mask ? 1 : 0;
    default:
      return calls[source_lane(call, lane)]->value;
  }
}

}  // namespace sinter::test
