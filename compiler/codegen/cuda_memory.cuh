// Vectors of elements in memory. Blank lines separate helpers: a kernel's text holds only those it uses.

template <class T, int N, int ALIGNMENT>
struct alignas(ALIGNMENT) pack {
  T v[N];
};

template <class P, class T>
static __device__ __forceinline__ P load(const T* from) {
  return *reinterpret_cast<const P*>(from);
}

template <class P, class T>
static __device__ __forceinline__ void store(T* to, const P& value) {
  *reinterpret_cast<P*>(to) = value;
}
