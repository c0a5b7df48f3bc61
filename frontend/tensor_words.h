#pragma once

#include <ATen/core/Tensor.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace sinter::frontend {

/// The members of a TensorImpl that describe it, as they lie in memory: sizes and strides of up to five dimensions,
/// offset, number of elements, dtype, device, flags and dispatch keys. Equal copies of one tensor's at two times mean
/// that none of them has changed; unequal ones may differ in unused bytes only.
///
/// LibTorch tells each of them through a function of its own, some of them virtual, and asking for all costs several
/// times as much as comparing the words. The members are protected: a derived class may name them.
class TensorWords : private c10::TensorImpl {
 public:
  using Copy = std::array<uint64_t, 15>;

  /// False for tensors whose words do not say all: with more dimensions, or sizes that a subclass tells.
  [[nodiscard]] static bool describe(const c10::TensorImpl& tensor) {
    const bool own_sizes =
        !tensor.has_symbolic_sizes_strides() && tensor.sizes().data() == tensor.sizes_default().data();
    const bool lie_in_a_row = bytes(&(tensor.*&TensorWords::key_set_) + 1) - begin_of(tensor) == sizeof(Copy);
    return own_sizes && tensor.dim() <= C10_SIZES_AND_STRIDES_MAX_INLINE_SIZE && lie_in_a_row;
  }

  [[nodiscard]] static Copy of(const c10::TensorImpl& tensor) {
    Copy copy;
    std::memcpy(copy.data(), begin_of(tensor), sizeof(copy));
    return copy;
  }

  [[nodiscard]] static bool equal(const c10::TensorImpl& tensor, const Copy& copy) {
    return std::memcmp(begin_of(tensor), copy.data(), sizeof(copy)) == 0;
  }

#ifdef __x86_64__
  /// The same by 32 bytes at a time, for processors with AVX2.
  [[nodiscard, gnu::target("avx2")]] static bool equal_avx2(const c10::TensorImpl& tensor, const Copy& copy) {
    const char* now = begin_of(tensor);
    const auto* then = reinterpret_cast<const char*>(copy.data());
    __m256i difference = _mm256_setzero_si256();
    for (size_t at = 0; at < sizeof(Copy); at += sizeof(__m256i)) {
      const size_t from = std::min(at, sizeof(Copy) - sizeof(__m256i));  // the last overlaps the one before
      difference = _mm256_or_si256(difference, _mm256_xor_si256(load(now + from), load(then + from)));
    }
    return _mm256_testz_si256(difference, difference) != 0;
  }
#endif

  /// What TensorImpl::autograd_meta tells, without a call: the member behind `storage_`.
  [[nodiscard]] static const c10::AutogradMetaInterface* autograd_meta(const c10::TensorImpl& tensor) {
    const c10::AutogradMetaInterface* meta = nullptr;
    std::memcpy(&meta, bytes(&(tensor.*&TensorWords::storage_) + 1), sizeof(meta));
    return meta;
  }

 private:
#ifdef __x86_64__
  [[gnu::target("avx2")]] static __m256i load(const char* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
#endif
  static const char* bytes(const void* member) { return static_cast<const char*>(member); }
  static const char* begin_of(const c10::TensorImpl& tensor) {
    return bytes(&(tensor.*&TensorWords::sizes_and_strides_));
  }
};

}  // namespace sinter::frontend
