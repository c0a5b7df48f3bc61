// What the CUDA column of the op table calls: arithmetic that C++ leaves undefined or does not have, and conversions.
// Halves are storage types: kernels convert them to float and back. What is written in PTX has a twin in plain C++ for
// the emulator. Blank lines separate helpers: a kernel's text holds only those it uses.

// A half in memory.
struct f16 {
  unsigned short bits;
};

// A bfloat16 in memory: the upper half of a float.
struct bf16 {
  unsigned short bits;
};

static __device__ __forceinline__ float f16_to_float(f16 x) {
#ifdef SINTER_EMULATE
  const unsigned sign = (x.bits & 0x8000u) << 16;
  const unsigned exponent = (x.bits >> 10) & 0x1fu;
  const unsigned fraction = x.bits & 0x3ffu;
  if (exponent == 0) {
    const float small = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -small : small;
  }
  const unsigned scaled = exponent == 31 ? 0x7f800000u : (exponent + 112) << 23;
  return __builtin_bit_cast(float, sign | scaled | fraction << 13);
#else
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x.bits));
  return r;
#endif
}

static __device__ __forceinline__ f16 float_to_f16(float x) {
  f16 r;
#ifdef SINTER_EMULATE
  const unsigned bits = __builtin_bit_cast(unsigned, x);
  const unsigned sign = bits >> 16 & 0x8000u;
  const unsigned size = bits & 0x7fffffffu;
  unsigned half = 0x7fffu;
  if (size < 0x38800000u) {  // Below the least normal half: adding 0.5 rounds to multiples of 2^-24.
    half = __builtin_bit_cast(unsigned, __builtin_bit_cast(float, size) + 0.5f) - 0x3f000000u;
  } else if (size < 0x477ff000u) {
    half = (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;
  } else if (size <= 0x7f800000u) {
    half = 0x7c00u;
  }
  r.bits = static_cast<unsigned short>(sign | half);
#else
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
#endif
  return r;
}

static __device__ __forceinline__ float bf16_to_float(bf16 x) {
#ifdef SINTER_EMULATE
  return __builtin_bit_cast(float, static_cast<unsigned>(x.bits) << 16);
#else
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
#endif
}

static __device__ __forceinline__ bf16 float_to_bf16(float x) {
  bf16 r;
#ifdef SINTER_EMULATE
  const unsigned bits = __builtin_bit_cast(unsigned, x);
  r.bits = static_cast<unsigned short>(x != x ? 0x7fffu : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
#else
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
#endif
  return r;
}

// Whether two types are the same.
template <class A, class B>
struct same {
  static constexpr bool value = false;
};
template <class A>
struct same<A, A> {
  static constexpr bool value = true;
};

// A float as an integer: truncated, out of range the nearest end, NaN is 0 or the least. Small integers go through a
// wider one and keep its low bits.
template <class Wide, class From>
static __device__ __forceinline__ Wide truncate(From x) {
#ifdef SINTER_EMULATE
  constexpr Wide highest = sizeof(Wide) == 8 ? static_cast<Wide>(0x7fffffffffffffffll) : static_cast<Wide>(0x7fffffff);
  constexpr From end = sizeof(Wide) == 8 ? static_cast<From>(0x1p63) : static_cast<From>(0x1p31);
  if (x != x) return 0;
  if (x >= end) return highest;
  if (x <= -end) return -highest - 1;
#endif
  return static_cast<Wide>(x);
}

// A value as another type. Halves come from other types through float, as in ATen.
template <class To, class From>
static __device__ __forceinline__ To convert(From x) {
  constexpr bool from_float = same<From, float>::value || same<From, double>::value;
  if constexpr (same<To, From>::value) {
    return x;
  } else if constexpr (same<From, f16>::value) {
    return convert<To>(f16_to_float(x));
  } else if constexpr (same<From, bf16>::value) {
    return convert<To>(bf16_to_float(x));
  } else if constexpr (same<To, f16>::value) {
    return float_to_f16(static_cast<float>(x));
  } else if constexpr (same<To, bf16>::value) {
    return float_to_bf16(static_cast<float>(x));
  } else if constexpr (same<To, bool>::value) {
    return x != static_cast<From>(0);
  } else if constexpr (!from_float || same<To, float>::value || same<To, double>::value) {
    return static_cast<To>(x);
  } else if constexpr (same<To, long long>::value || same<To, unsigned char>::value) {
    return static_cast<To>(truncate<long long>(x));
  } else {
    return static_cast<To>(truncate<int>(x));
  }
}

// Integer arithmetic modulo 2^bits; bools add as `or`.
template <class T>
static __device__ __forceinline__ T wrap_add(T a, T b) {
  return static_cast<T>(static_cast<unsigned long long>(a) + static_cast<unsigned long long>(b));
}

template <class T>
static __device__ __forceinline__ T wrap_sub(T a, T b) {
  return static_cast<T>(static_cast<unsigned long long>(a) - static_cast<unsigned long long>(b));
}

template <class T>
static __device__ __forceinline__ T wrap_mul(T a, T b) {
  return static_cast<T>(static_cast<unsigned long long>(a) * static_cast<unsigned long long>(b));
}

template <class T>
static __device__ __forceinline__ T wrap_neg(T a) {
  return static_cast<T>(0ull - static_cast<unsigned long long>(a));
}

template <class T>
static __device__ __forceinline__ T wrap_abs(T a) {
  if constexpr (static_cast<T>(-1) < static_cast<T>(0)) {
    if (a < static_cast<T>(0)) return static_cast<T>(0ull - static_cast<unsigned long long>(a));
  }
  return a;
}

// All bits inverted; a bool negated.
template <class T>
static __device__ __forceinline__ T invert(T a) {
  if constexpr (same<T, bool>::value) {
    return !a;
  } else {
    return static_cast<T>(~a);
  }
}

// Truncating quotient and its remainder. By zero: -1 and the dividend. The least integer by -1: itself and 0.
template <class T>
static __device__ __forceinline__ T quotient(T a, T b) {
  if (b == static_cast<T>(0)) return static_cast<T>(-1);
  if constexpr (static_cast<T>(-1) < static_cast<T>(0)) {
    if (b == static_cast<T>(-1)) return static_cast<T>(0ull - static_cast<unsigned long long>(a));
  }
  return static_cast<T>(a / b);
}

template <class T>
static __device__ __forceinline__ T modulo(T a, T b) {
  if (b == static_cast<T>(0)) return a;
  if constexpr (static_cast<T>(-1) < static_cast<T>(0)) {
    if (b == static_cast<T>(-1)) return static_cast<T>(0);
  }
  return static_cast<T>(a % b);
}

// Shifts. An amount outside the width gives 0, or the sign where it is shifted in.
template <class T>
static __device__ __forceinline__ T shift_left(T a, T b) {
  const long long amount = static_cast<long long>(b);
  if (amount < 0 || amount > 63) return static_cast<T>(0);
  return static_cast<T>(static_cast<unsigned long long>(a) << amount);
}

template <class T>
static __device__ __forceinline__ T shift_right(T a, T b) {
  const long long amount = static_cast<long long>(b);
  return static_cast<T>(static_cast<long long>(a) >> (amount < 0 || amount > 63 ? 63 : amount));
}

// The larger and the smaller of two; NaN when either is NaN.
template <class T>
static __device__ __forceinline__ T maximum(T a, T b) {
  if (a != a) return a;
  return b != b || b > a ? b : a;
}
static __device__ __forceinline__ float maximum(float a, float b) {
#ifdef SINTER_EMULATE
  if (a != a) return a;
  return b != b || b > a ? b : a;
#else
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#endif
}

template <class T>
static __device__ __forceinline__ T minimum(T a, T b) {
  if (a != a) return a;
  return b != b || b < a ? b : a;
}
static __device__ __forceinline__ float minimum(float a, float b) {
#ifdef SINTER_EMULATE
  if (a != a) return a;
  return b != b || b < a ? b : a;
#else
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#endif
}
