// What a generated kernel finds when it is compiled as C++: CUDA's keywords, built-in variables and intrinsics.
// Included by the emulator's generated sources, before any kernel.
#pragma once

#include <math.h>
#include <string.h>

#include <cstdint>
#include <type_traits>
#include <utility>

#define SINTER_EMULATE 1
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)

struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};

inline thread_local uint3 threadIdx;
inline thread_local uint3 blockIdx;

inline float __int_as_float(int bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
inline int __float_as_int(float value) {
  int bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline unsigned __float_as_uint(float value) { return static_cast<unsigned>(__float_as_int(value)); }
inline float __uint_as_float(unsigned bits) { return __int_as_float(static_cast<int>(bits)); }
inline double __longlong_as_double(long long bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
inline long long __double_as_longlong(double value) {
  long long bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// Runs every thread of every block of a one-dimensional launch.
template <class... Params, size_t... I>
void run_grid(void (*kernel)(Params...), void** args, unsigned grid, unsigned block, std::index_sequence<I...>) {
  for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) {
    for (threadIdx.x = 0; threadIdx.x < block; ++threadIdx.x) {
      kernel(*static_cast<std::remove_const_t<Params>*>(args[I])...);
    }
  }
}

template <class... Params>
void run_grid(void (*kernel)(Params...), void** args, unsigned grid, unsigned block) {
  run_grid(kernel, args, grid, block, std::index_sequence_for<Params...>());
}
