// What a generated kernel finds when it is compiled as C++: CUDA's keywords, built-in variables and intrinsics.
// Included by the emulator's generated sources, before any kernel.
#pragma once

#include <math.h>
#include <string.h>

#include <cstdint>
#include <type_traits>
#include <utility>

#ifdef SINTER_TRACED
#include "cuda_traced.h"
#endif
#include "cuda_together.h"
#include "machine.h"

#define SINTER_EMULATE 1
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

// A shared array, which `used` keeps from being computed away. Where accesses are traced the arrays of a kernel stand
// together in a section; elsewhere the address sanitizer guards each.
#ifdef SINTER_TRACED
#define SINTER_SHARED(kernel) static __attribute__((used, section(kernel)))
constexpr bool is_traced = true;
#else
#define SINTER_SHARED(kernel) static __attribute__((used))
constexpr bool is_traced = false;
#endif

template <class T>
T* dynamic_shared() {
  return static_cast<T*>(sinter::test::machine->dynamic_shared());
}

using uint3 = sinter::test::Index3;
using dim3 = sinter::test::Index3;

inline thread_local uint3 threadIdx;
inline thread_local uint3 blockIdx;
inline thread_local dim3 blockDim;
inline thread_local dim3 gridDim;
constexpr int warpSize = 32;

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

inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline float rsqrt(float value) { return 1 / sqrtf(value); }
inline double rsqrt(double value) { return 1 / sqrt(value); }

/// Runs the kernel as the thread that the indices name.
template <class... Params>
struct BoundKernel {
  void (*kernel)(Params...);
  void** args;

  template <size_t... I>
  void with(std::index_sequence<I...>) const {
    kernel(*static_cast<std::remove_const_t<Params>*>(args[I])...);
  }
  static void run(void* self) { static_cast<const BoundKernel*>(self)->with(std::index_sequence_for<Params...>()); }
};

/// Calls visit with every index below `size`, x fastest.
template <class Visit>
void for_each_index(uint3 size, uint3& index, Visit visit) {
  for (index.z = 0; index.z < size.z; ++index.z) {
    for (index.y = 0; index.y < size.y; ++index.y) {
      for (index.x = 0; index.x < size.x; ++index.x) visit();
    }
  }
}

/// Runs every thread of every block: by the machine, or one after the other where there is none.
inline void run_grid(sinter::test::KernelCall call, const sinter::test::Geometry& geometry,
                     sinter::test::Machine* machine) {
  gridDim = geometry.grid;
  blockDim = geometry.block;
  sinter::test::machine = machine;
  if (machine != nullptr) return machine->run(call);
  for_each_index(gridDim, blockIdx, [&] { for_each_index(blockDim, threadIdx, [&] { call.run(call.context); }); });
}

/// The kernel's static shared arrays lie from `shared` to `shared_end`, where it is traced.
template <class... Params>
void run_grid(void (*kernel)(Params...), void** args, const sinter::test::Geometry& geometry,
              sinter::test::Machine* machine, char* shared, char* shared_end) {
  BoundKernel<Params...> bound{kernel, args};
  const auto shared_bytes = static_cast<size_t>(shared_end - shared);
  run_grid({bound.run, &bound, &threadIdx, &blockIdx, is_traced, shared, shared_bytes}, geometry, machine);
}
