#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/emulator/texts.h"

/// Kernels whose threads do something wrong together: each has one fault, which the emulator must name.
namespace sinter::test {
namespace {

/// One block of 64 threads whose parameter is `int* out`.
KernelSource one_block(const std::string& name, const std::string& body, unsigned grid = 1) {
  return written(name, {grid}, {64}, "extern \"C\" __global__ void " + name + "(int* out) {\n" + body + "}\n");
}

const KernelSource no_barrier = one_block("no_barrier", R"(  __shared__ int sum[64];
  sum[threadIdx.x] = 1;
  out[threadIdx.x] = threadIdx.x == 62 ? sum[63] : 0;
)");

const KernelSource one_barrier_too_few = one_block("one_barrier_too_few", R"(  __shared__ int sum[64];
  for (int i = 0; i < 2; ++i) {
    sum[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = sum[63 - threadIdx.x];
  }
)");

const KernelSource warp_barrier = one_block("warp_barrier", R"(  __shared__ int sum[64];
  sum[threadIdx.x] = 1;
  __syncwarp();
  out[threadIdx.x] = sum[63 - threadIdx.x];
)");

const KernelSource shuffle_as_barrier = one_block("shuffle_as_barrier", R"(  __shared__ int sum[64];
  sum[threadIdx.x] = 1;
  __shfl_xor_sync(0xffffffffu, 1, 1);
  out[threadIdx.x] = sum[threadIdx.x ^ 1];
)");

const KernelSource plain_counter = one_block("plain_counter", R"(  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  if (threadIdx.x == 5) count += 1;
  else atomicAdd(&count, 1);
  __syncthreads();
  out[threadIdx.x] = count;
)");

const KernelSource divergent_barrier = one_block("divergent_barrier", R"(  __shared__ int sum[64];
  if (threadIdx.x < 16) {
    sum[threadIdx.x] = 1;
    __syncthreads();
  } else {
    sum[threadIdx.x] = 2;
    __syncthreads();
  }
  out[threadIdx.x] = sum[63 - threadIdx.x];
)");

const KernelSource barrier_and_shuffle = one_block("barrier_and_shuffle", R"(  if (threadIdx.x < 40) __syncthreads();
  out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1, 1);
)");

const KernelSource exited_lane = one_block("exited_lane", R"(  if (threadIdx.x == 37) return;
  out[threadIdx.x] = __shfl_down_sync(0xffffffffu, 1, 1);
)");

const KernelSource missing_lane = written("missing_lane", {1}, {40}, R"(
extern "C" __global__ void missing_lane(int* out) {
  out[threadIdx.x] = __any_sync(0xffffffffu, 1);
})");

const KernelSource other_shuffle = one_block("other_shuffle", R"(  int x = 1;
  if (threadIdx.x == 3) x = __shfl_up_sync(0xffffffffu, x, 1);
  else x = __shfl_down_sync(0xffffffffu, x, 1);
  out[threadIdx.x] = x;
)");

const KernelSource other_mask = one_block("other_mask", R"(  const unsigned mask = threadIdx.x == 3 ? 0x1fu : 0xfu;
  if (threadIdx.x < 4) out[threadIdx.x] = __all_sync(mask, 1);
)");

const KernelSource not_in_mask = one_block("not_in_mask", R"(  __syncwarp(0xffff);
  out[threadIdx.x] = 1;
)");

const KernelSource reads_unnamed = one_block("reads_unnamed", R"(  int x = 1;
  if (threadIdx.x < 16) x = __shfl_down_sync(0xffff, x, 8);
  out[threadIdx.x] = x;
)");

const KernelSource odd_width = one_block("odd_width", R"(  out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1, 1, 12);
)");

const KernelSource beyond = one_block("beyond", R"(  __shared__ int row[64];
  row[threadIdx.x + 1] = 1;
  __syncthreads();
  out[threadIdx.x] = row[threadIdx.x];
)");

const KernelSource beyond_dynamic = one_block("beyond_dynamic", R"(  extern __shared__ int row[];
  row[threadIdx.x + 1] = 1;
  __syncthreads();
  out[threadIdx.x] = row[threadIdx.x];
)");

const KernelSource beyond_local = one_block("beyond_local", R"(  int mine[4] = {1, 2, 3, 4};
  __syncthreads();
  out[threadIdx.x] = mine[out[0]++];
)");

const KernelSource unwritten = one_block("unwritten", R"(  __shared__ int row[64];
  if (threadIdx.x != 9) row[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = row[63 - threadIdx.x];
)");

const KernelSource never_written = one_block("never_written", R"(  __shared__ int row[64];
  out[threadIdx.x] = row[threadIdx.x];
)");

const KernelSource of_another_block = one_block("of_another_block", R"(  extern __shared__ int row[];
  if (blockIdx.x == 0) row[threadIdx.x] = 1;
  __syncthreads();
  if (blockIdx.x == 1) out[threadIdx.x] = row[threadIdx.x];
)",
                                                2);

const KernelSource last_one_wins = one_block("last_one_wins", R"(  __syncthreads();
  out[0] = threadIdx.x;
)");

const KernelSource last_block_wins = one_block("last_block_wins", R"(  __syncthreads();
  if (threadIdx.x == 0) out[0] = blockIdx.x;
)",
                                               2);

const Texts& texts() {
  static const Texts all({no_barrier,        one_barrier_too_few, warp_barrier,  shuffle_as_barrier, plain_counter,
                          divergent_barrier, barrier_and_shuffle, exited_lane,   missing_lane,       other_shuffle,
                          other_mask,        not_in_mask,         reads_unnamed, odd_width,          beyond,
                          beyond_dynamic,    beyond_local,        unwritten,     never_written,      of_another_block,
                          last_one_wins,     last_block_wins});
  return all;
}

/// What the emulator says about a kernel; empty when it finds nothing.
std::string fault(std::string_view name, size_t dynamic_shared_bytes = 0) {
  std::vector<int> out(64);
  try {
    texts().run(name, {out.data()}, dynamic_shared_bytes);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

void expect_fault(std::string_view name, std::string_view part, size_t dynamic_shared_bytes = 0) {
  const std::string got = fault(name, dynamic_shared_bytes);
  EXPECT_NE(got.find(part), std::string::npos) << "got: " << got << "\nwant: " << part;
}
TEST(FiberFaults, name_the_two_threads_of_a_race) {
  EXPECT_EQ(fault("no_barrier"),
            "no_barrier: block 0: byte 252 of static shared memory: race: thread 63 writes it and thread 62 reads it, "
            "with no barrier in between");
}

TEST(FiberFaults, a_loop_that_writes_again_what_others_may_still_read_is_a_race) {
  expect_fault("one_barrier_too_few", "race: thread 32 writes it and thread 31 reads it");
  expect_fault("one_barrier_too_few", "(thread 31 last passed the barrier of line 5)");
}

TEST(FiberFaults, a_warp_barrier_orders_nothing_between_warps) {
  expect_fault("warp_barrier", "race: thread 0 writes it and thread 63 reads it");
}

TEST(FiberFaults, a_shuffle_is_no_barrier_for_memory) {
  expect_fault("shuffle_as_barrier", "race: thread 62 writes it and thread 63 reads it");
}

TEST(FiberFaults, an_atomic_and_a_plain_access_are_a_race) {
  expect_fault("plain_counter", "race: thread 63 updates it and thread 5 reads it");
}

TEST(FiberFaults, a_barrier_on_two_paths_is_two_barriers) {
  expect_fault("divergent_barrier", "thread 0 waits at __syncthreads of line 5, thread 16 at that of line 8");
}

TEST(FiberFaults, a_barrier_that_waits_for_a_shuffle_is_a_deadlock) {
  expect_fault("barrier_and_shuffle",
               "deadlock: thread 40 waits at __shfl_xor_sync (line 3, mask 0xffffffff) for thread 32, which waits at "
               "__syncthreads (line 2)");
}

TEST(FiberFaults, a_shuffle_waits_in_vain_for_a_lane_that_has_exited) {
  expect_fault("exited_lane", "deadlock: thread 32 waits at __shfl_down_sync (line 3, mask 0xffffffff) for thread 37");
  expect_fault("exited_lane", "which has exited");
}

TEST(FiberFaults, a_vote_waits_in_vain_for_a_lane_that_the_block_does_not_have) {
  expect_fault("missing_lane", "for thread 40, which a block of 40 threads does not have");
}

TEST(FiberFaults, lanes_at_different_shuffles_wait_in_vain) {
  expect_fault("other_shuffle",
               "thread 0 waits at __shfl_down_sync (line 4, mask 0xffffffff) for thread 3, which waits at "
               "__shfl_up_sync (line 3, mask 0xffffffff)");
}

TEST(FiberFaults, lanes_with_different_masks_wait_in_vain) {
  expect_fault("other_mask", "for thread 3, which waits at __all_sync (line 3, mask 0x1f)");
}

TEST(FiberFaults, a_mask_names_the_lane_that_calls) {
  expect_fault("not_in_mask", "thread 16: the mask of __syncwarp (line 2, mask 0xffff) does not name the lane");
}

TEST(FiberFaults, a_mask_names_the_lane_that_is_read) {
  expect_fault("reads_unnamed", "thread 8: __shfl_down_sync (line 3, mask 0xffff) reads lane 16");
}

TEST(FiberFaults, the_width_of_a_shuffle_is_a_power_of_two) {
  expect_fault("odd_width", "has width 12, which is no power of two");
}

TEST(FiberFaults, shared_memory_is_written_before_it_is_read) {
  expect_fault("unwritten", "byte 36 of static shared memory: thread 54 reads it before any thread of the block");
  expect_fault("never_written", "before any thread of the block has written it");
}

TEST(FiberFaults, shared_memory_of_the_block_before_is_not_read) {
  expect_fault("of_another_block", "block 1: byte 252 of dynamic shared memory: thread 63 reads it before any", 256);
}

TEST(FiberFaults, results_do_not_depend_on_which_thread_or_block_comes_last) {
  expect_fault("last_one_wins", "argument 0, byte 0 depends on the order in which threads or blocks run");
  expect_fault("last_block_wins", "argument 0, byte 0 depends on the order in which threads or blocks run");
}

TEST(FiberFaults, memory_that_the_heap_does_not_hold_is_refused) {
  int out = 0;
  EXPECT_THROW(texts().run("no_barrier", {&out}), std::runtime_error);
}

TEST(FiberFaultsDeathTest, the_end_of_a_shared_array_is_guarded) {
  EXPECT_DEATH(fault("beyond"), "global-buffer-overflow");
}

TEST(FiberFaultsDeathTest, the_end_of_dynamic_shared_memory_is_guarded) {
  EXPECT_DEATH(fault("beyond_dynamic", 256), "heap-buffer-overflow");
}

TEST(FiberFaultsDeathTest, the_end_of_a_local_array_is_guarded_on_the_stack_of_a_fiber) {
  EXPECT_DEATH(fault("beyond_local"), "stack-buffer-overflow");
}

}  // namespace
}  // namespace sinter::test
