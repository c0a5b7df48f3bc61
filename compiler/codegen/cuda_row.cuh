// Joins values of several threads. Blank lines separate helpers: a kernel's text holds only those it uses.

// The value of a part of a warp: `threads` neighbouring lanes, all of which call this. Every lane gets the same bits.
template <unsigned threads, class T, class Join>
static __device__ __forceinline__ T join_lanes(T value, Join join) {
  const unsigned part = threads == 32u ? ~0u : ((1u << (threads & 31u)) - 1u) << (threadIdx.x & 31u & ~(threads - 1u));
#pragma unroll
  for (unsigned distance = threads / 2u; distance > 0u; distance /= 2u) {
    value = join(value, (T)__shfl_xor_sync(part, value, distance));
  }
  return value;
}

// Leaves the value of each warp of a block in `partial`: shared memory for one value a warp that nothing else uses.
template <class T, class Join>
static __device__ __forceinline__ void leave_warp(T value, T* partial, Join join) {
  value = join_lanes<32u>(value, join);
  if (threadIdx.x % 32u == 0u) partial[threadIdx.x / 32u] = value;
}

// The value of a whole block of `threads`, a multiple of 32, from what its warps have left before a barrier; joining
// `identity` changes nothing.
template <unsigned threads, class T, class Join>
static __device__ __forceinline__ T join_block(const T* partial, T identity, Join join) {
  return join_lanes<32u>(threadIdx.x % 32u < threads / 32u ? partial[threadIdx.x % 32u] : identity, join);
}

// The value of the threads of a block with the same lane, one of every warp. `partial` is shared memory for one value a
// thread that nothing else uses.
template <unsigned warps, class T, class Join>
static __device__ __forceinline__ T join_warps(T value, T* partial, Join join) {
  partial[threadIdx.x] = value;
  __syncthreads();
  T all = partial[threadIdx.x % 32u];
#pragma unroll
  for (unsigned w = 1u; w < warps; ++w) all = join(all, partial[w * 32u + threadIdx.x % 32u]);
  return all;
}

// The value of column threadIdx.x % (beside * width) of a block of `warps` warps: of every warp, `beside` neighbouring
// threads have `width` columns each, and every beside-th thread has the same ones. `partial` is shared memory for one
// value a column and warp that nothing else uses.
template <unsigned beside, unsigned warps, unsigned width, class T, class Join>
static __device__ __forceinline__ T join_columns(T (&values)[width], T* partial, Join join) {
  const unsigned lane = threadIdx.x % 32u;
#pragma unroll
  for (unsigned k = 0; k < width; ++k) {
    T value = values[k];
#pragma unroll
    for (unsigned distance = beside; distance < 32u; distance *= 2u) {
      value = join(value, (T)__shfl_xor_sync(~0u, value, distance));
    }
    if (lane < beside) partial[(threadIdx.x / 32u * beside + lane) * width + k] = value;
  }
  __syncthreads();
  const unsigned column = threadIdx.x % (beside * width);
  T all = partial[column];
#pragma unroll
  for (unsigned w = 1u; w < warps; ++w) all = join(all, partial[w * beside * width + column]);
  return all;
}
