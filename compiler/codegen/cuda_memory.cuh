// Vectors of elements in memory. Blank lines separate helpers: a kernel's text holds only those it uses.

template <class T, int N, int ALIGNMENT>
struct alignas(ALIGNMENT) pack {
  T v[N];
};

// 16 bytes at once are loaded as words of which the compiler knows nothing: NVRTC 13.0 takes a sum of bytes that were
// loaded in another way for one of 16 bits, and leaves out the extension of its sign.
template <class P, class T>
static __device__ __forceinline__ P load(const T* from) {
  if constexpr (sizeof(T) == 1u && alignof(P) == 16u) {
    using Words = pack<unsigned, sizeof(P) / 4u, 16>;
    Words words = *reinterpret_cast<const Words*>(from);
    for (unsigned& word : words.v) asm("" : "+r"(word));
    return __builtin_bit_cast(P, words);
  } else {
    return *reinterpret_cast<const P*>(from);
  }
}

template <class P, class T>
static __device__ __forceinline__ void store(T* to, const P& value) {
  *reinterpret_cast<P*>(to) = value;
}

// A kernel may be launched while the one before it still runs. Here it waits until that has ended and what it wrote can
// be seen, and lets the next one be launched. Every thread calls this before it touches memory.
static __device__ __forceinline__ void wait_for_earlier() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// The pointer, of which the compiler knows no more than that it is one to global memory: no access through it is moved
// in front of this.
template <class T>
static __device__ __forceinline__ T* from_here(T* pointer) {
#if __CUDA_ARCH__ >= 900
  asm volatile("" : "+l"(pointer));
  __builtin_assume(__isGlobal(pointer));
#endif
  return pointer;
}

// What a load gives where `holds`, else `otherwise`. Words are chosen, for halves would be shuffled one by one.
template <class P, class T>
static __device__ __forceinline__ P load_if(bool holds, const T* from, const P& otherwise) {
  if constexpr (alignof(P) >= sizeof(unsigned)) {
    using Words = pack<unsigned, sizeof(P) / sizeof(unsigned), alignof(P)>;
    Words words = __builtin_bit_cast(Words, otherwise);
    if (holds) words = load<Words>(from);
    return __builtin_bit_cast(P, words);
  } else {
    return holds ? load<P>(from) : otherwise;
  }
}
