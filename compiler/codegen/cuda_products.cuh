// Products of small matrices that a warp computes on tensor cores. Every lane calls them; lane 4 g + t holds of a
// [16, 16]: elements 2 t and 2 t + 1 of row g, the same of row g + 8, then 2 t + 8 and 2 t + 9 of both; of b [16, 8]:
// the same four of column g; of the sum [16, 8]: columns 2 t and 2 t + 1 of row g, then of row g + 8. Two halves a
// word.

// What add_product does, by shuffles.
template <class Widen>
static __device__ void emulated_product(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                                        Widen widen) {
  const unsigned lane = threadIdx.x % 32u;
  for (unsigned t = 0; t < 4u; ++t) {
    unsigned row[4];
    for (unsigned k = 0; k < 4u; ++k) row[k] = __shfl_sync(~0u, a[k], (int)(lane / 4u * 4u + t));
    for (unsigned n = 0; n < 2u; ++n) {
      const int from = (int)((lane % 4u * 2u + n) * 4u + t);
      const unsigned column[2] = {__shfl_sync(~0u, b0, from), __shfl_sync(~0u, b1, from)};
      for (unsigned k = 0; k < 4u; ++k) {
        const float factor = widen(column[k / 2u] >> k % 2u * 16u & 0xffffu);
        sum[n] += widen(row[k / 2u * 2u] >> k % 2u * 16u & 0xffffu) * factor;
        sum[2u + n] += widen(row[k / 2u * 2u + 1u] >> k % 2u * 16u & 0xffffu) * factor;
      }
    }
  }
}

// sum += a b, of f16.
static __device__ __forceinline__ void add_product(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                                                   f16) {
#ifdef SINTER_EMULATE
  emulated_product(sum, a, b0, b1, [](unsigned bits) { return f16_to_float(f16{(unsigned short)bits}); });
#else
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

// sum += a b, of bf16.
static __device__ __forceinline__ void add_product(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                                                   bf16) {
#ifdef SINTER_EMULATE
  emulated_product(sum, a, b0, b1, [](unsigned bits) { return bf16_to_float(bf16{(unsigned short)bits}); });
#else
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

// Two halves as a word, the first in its lower bits.
template <class T>
static __device__ __forceinline__ unsigned two_halves(T low, T high) {
  return low.bits | (unsigned)high.bits << 16;
}

// What `P` holds of a row from element `at` on, with zeros from `end` on.
template <class P, class T>
static __device__ __forceinline__ P load_within(const T* row, unsigned at, unsigned end) {
  P piece = {};
#pragma unroll
  for (unsigned i = 0; i < sizeof(P) / sizeof(T); ++i) {
    if (at + i < end) piece.v[i] = row[at + i];
  }
  return piece;
}

// The same halves, two a word.
template <class P>
static __device__ __forceinline__ pack<unsigned, sizeof(P) / 4u, 4> words_of(const P& halves) {
  return __builtin_bit_cast(pack<unsigned, sizeof(P) / 4u, 4>, halves);
}
