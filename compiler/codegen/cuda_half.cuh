// Functions for values that end in f16 or bf16 stores: over all f16 their error is below a fortieth of half an ulp of
// the result. What is written in PTX has a twin in plain C++ for the emulator.

// 2^x.
static __device__ __forceinline__ float approx_exp2(float x) {
#ifdef SINTER_EMULATE
  return exp2f(x);
#else
  float r;
  asm("ex2.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
#endif
}

// 1 / x, for x below 2^126.
static __device__ __forceinline__ float approx_reciprocal(float x) {
#ifdef SINTER_EMULATE
  return 1.0f / x;
#else
  float r;
  asm("rcp.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
#endif
}

static __device__ __forceinline__ float half_divide(float x, float y) {
#ifdef SINTER_EMULATE
  return x / y;
#else
  float r;
  asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
  return r;
#endif
}

static __device__ __forceinline__ float half_sqrt(float x) {
#ifdef SINTER_EMULATE
  return sqrtf(x);
#else
  float r;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
#endif
}

static __device__ __forceinline__ float half_exp(float x) { return approx_exp2(x * 1.44269504f); }

// erfc(z) for z >= 0 as 2^p(z): p fits log2(erfc) to 3.3e-6 on [0, 4.1], where erfc leaves f32's reach of 1, and falls
// ever after.
static __device__ __forceinline__ float half_erfc_positive(float z) {
  float p = -2.0688658e-05f;
  p = fmaf(p, z, 0.000491946354f);
  p = fmaf(p, z, -0.00525995111f);
  p = fmaf(p, z, 0.0340228193f);
  p = fmaf(p, z, -0.152612314f);
  p = fmaf(p, z, -0.916933835f);
  p = fmaf(p, z, -1.62811387f);
  p = fmaf(p, z, 4.67835753e-06f);
  return approx_exp2(p);
}

// 1 + erf(z), without the cancellation that adding would bring for negative z.
static __device__ __forceinline__ float half_one_plus_erf(float z) {
  const float tail = half_erfc_positive(fabsf(z));
  return z < 0.0f ? tail : 2.0f - tail;
}

static __device__ __forceinline__ float half_erf(float z) {
  const float u = z * z;
  float p = -0.021018181f;
  p = fmaf(p, u, 0.110583946f);
  p = fmaf(p, u, -0.375839561f);
  p = fmaf(p, u, 1.12837338f);
  const float large = copysignf(1.0f - half_erfc_positive(fabsf(z)), z);
  return u < 0.64f ? p * z : large;
}

static __device__ __forceinline__ float half_tanh(float x) {
  const float u = x * x;
  float p = -0.0409294218f;
  p = fmaf(p, u, 0.130578563f);
  p = fmaf(p, u, -0.333140403f);
  p = fmaf(p, u, 0.999997854f);
  const float large = copysignf(fmaf(-2.0f, approx_reciprocal(approx_exp2(fabsf(x) * 2.88539008f) + 1.0f), 1.0f), x);
  return u < 0.36f ? p * x : large;
}
