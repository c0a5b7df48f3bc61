#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "tests/emulator/texts.h"

/// Kernels whose threads work together, as they should.
namespace sinter::test {
namespace {

const KernelSource block_sum = written("block_sum", {3}, {96}, R"(
static __device__ __forceinline__ float warp_sum(float x) {
  for (int distance = 16; distance > 0; distance /= 2) x += __shfl_xor_sync(0xffffffffu, x, distance);
  return x;
}
extern "C" __global__ void block_sum(const float* in, float* out, unsigned n) {
  __shared__ float partial[3];
  float x = 0;
  for (unsigned i = threadIdx.x; i < n; i += blockDim.x) x += in[blockIdx.x * n + i];
  x = warp_sum(x);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = x;
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0] + partial[1] + partial[2];
})");

const KernelSource transpose = written("transpose", {2, 3}, {32, 8}, R"(
extern "C" __global__ void transpose(const float* in, float* out) {
  __shared__ float tile[32][33];
  const unsigned columns = gridDim.x * 32, rows = gridDim.y * 32;
  const unsigned x = blockIdx.x * 32, y = blockIdx.y * 32;
  for (unsigned i = threadIdx.y; i < 32; i += blockDim.y) tile[i][threadIdx.x] = in[(y + i) * columns + x + threadIdx.x];
  __syncthreads();
  for (unsigned i = threadIdx.y; i < 32; i += blockDim.y) out[(x + i) * rows + y + threadIdx.x] = tile[threadIdx.x][i];
})");

const KernelSource last_block_sum = written("last_block_sum", {5}, {64}, R"(
extern "C" __global__ void last_block_sum(const int* in, int* partial, unsigned* arrived, int* out) {
  __shared__ int sum;
  __shared__ bool last;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, in[blockIdx.x * blockDim.x + threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  int total = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) total += partial[i];
  *out = total;
})");

const KernelSource reversed = written("reversed", {2}, {48}, R"(
extern "C" __global__ void reversed(const double* in, double* out) {
  extern __shared__ __align__(16) double row[];
  const unsigned first = blockIdx.x * blockDim.x;
  row[threadIdx.x] = in[first + threadIdx.x];
  __syncthreads();
  out[first + threadIdx.x] = row[blockDim.x - 1 - threadIdx.x];
})");

const KernelSource shuffles = written("shuffles", {1}, {32}, R"(
extern "C" __global__ void shuffles(long long* out) {
  const long long lane = threadIdx.x;
  const unsigned all = 0xffffffffu;
  out[lane] = __shfl_sync(all, lane, 5);
  out[32 + lane] = __shfl_up_sync(all, lane, 3);
  out[64 + lane] = __shfl_down_sync(all, lane, 3);
  out[96 + lane] = __shfl_xor_sync(all, lane, 9);
  out[128 + lane] = __shfl_sync(all, static_cast<unsigned char>(lane), 5, 8);
  out[160 + lane] = static_cast<long long>(__shfl_up_sync(all, static_cast<double>(lane), 3, 8));
  out[192 + lane] = static_cast<long long>(__shfl_down_sync(all, static_cast<float>(lane), 3, 8));
})");

const KernelSource votes = written("votes", {1}, {64}, R"(
extern "C" __global__ void votes(unsigned* out) {
  const unsigned lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    out[lane] = __ballot_sync(0xffffffffu, lane % 3 == 0);
  } else if (lane < 4) {
    out[32 + lane] = __any_sync(0xfu, lane == 2) * 10 + __all_sync(0xfu, lane < 3);
  }
})");

const KernelSource warp_rows = written("warp_rows", {1}, {64}, R"(
extern "C" __global__ void warp_rows(const int* in, int* out) {
  __shared__ int row[2][32];
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  row[warp][lane] = in[threadIdx.x];
  __syncwarp();
  out[threadIdx.x] = row[warp][31 - lane];
})");

const KernelSource early_exit = written("early_exit", {1}, {64}, R"(
extern "C" __global__ void early_exit(int* out) {
  __shared__ int last;
  if (threadIdx.x >= 40) return;
  if (threadIdx.x == 39) last = 7;
  __syncthreads();
  out[threadIdx.x] = last;
})");

const Texts& texts() {
  static const Texts all({block_sum, transpose, last_block_sum, reversed, shuffles, votes, warp_rows, early_exit});
  return all;
}

template <class T>
std::vector<T> counted(size_t count) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), T{1});
  return values;
}

TEST(Fibers, sum_a_block_with_shuffles_and_shared_memory) {
  auto in = counted<float>(300);
  std::vector<float> out(3);
  texts().run("block_sum", {in.data(), out.data(), int64_t{100}});
  EXPECT_EQ(out, (std::vector<float>{5050, 15050, 25050}));
}

TEST(Fibers, transpose_through_shared_memory_in_a_grid_of_two_dimensions) {
  auto in = counted<float>(64 * 96);
  std::vector<float> out(64 * 96);
  texts().run("transpose", {in.data(), out.data()});
  for (size_t row = 0; row < 96; ++row) {
    for (size_t column = 0; column < 64; ++column) ASSERT_EQ(out[column * 96 + row], in[row * 64 + column]);
  }
}

TEST(Fibers, let_the_block_that_comes_last_finish_a_sum) {
  auto in = counted<int>(320);
  std::vector<int> partial(5);
  std::vector<unsigned> arrived(1);
  std::vector<int> out(1);
  texts().run("last_block_sum", {in.data(), partial.data(), arrived.data(), out.data()});
  EXPECT_EQ(out[0], 320 * 321 / 2);
  EXPECT_EQ(arrived[0], 0U) << "ready for the next launch";
}

TEST(Fibers, have_the_dynamic_shared_memory_of_the_launch) {
  auto in = counted<double>(96);
  std::vector<double> out(96);
  texts().run("reversed", {in.data(), out.data()}, 48 * sizeof(double));
  EXPECT_EQ(out[0], 48);
  EXPECT_EQ(out[95], 49);
}

TEST(Fibers, shuffle_numbers_of_any_type_as_CUDA_does) {
  std::vector<int64_t> out(7 * 32);
  texts().run("shuffles", {out.data()});
  for (int64_t lane = 0; lane < 32; ++lane) {
    const auto got = [&](int64_t shuffle) { return out[static_cast<size_t>(shuffle * 32 + lane)]; };
    const int64_t eight = lane / 8 * 8;
    EXPECT_EQ(got(0), 5);
    EXPECT_EQ(got(1), lane < 3 ? lane : lane - 3);
    EXPECT_EQ(got(2), lane > 28 ? lane : lane + 3);
    EXPECT_EQ(got(3), lane ^ 9);
    EXPECT_EQ(got(4), eight + 5);
    EXPECT_EQ(got(5), lane - eight < 3 ? lane : lane - 3);
    EXPECT_EQ(got(6), lane - eight > 4 ? lane : lane + 3);
  }
}

TEST(Fibers, vote_within_a_mask) {
  std::vector<unsigned> out(36);
  texts().run("votes", {out.data()});
  for (size_t lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], 0x49249249U);
  for (size_t lane = 32; lane < 36; ++lane) EXPECT_EQ(out[lane], 10U) << "any, and not all";
}

TEST(Fibers, exchange_shared_memory_within_a_warp_after_its_own_barrier) {
  auto in = counted<int>(64);
  std::vector<int> out(64);
  texts().run("warp_rows", {in.data(), out.data()});
  EXPECT_EQ(out[0], 32);
  EXPECT_EQ(out[63], 33);
}

TEST(Fibers, do_not_wait_at_a_barrier_for_threads_that_have_exited) {
  std::vector<int> out(40);
  texts().run("early_exit", {out.data()});
  EXPECT_EQ(out, std::vector<int>(40, 7));
}

}  // namespace
}  // namespace sinter::test
