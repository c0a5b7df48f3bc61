#pragma once

#include <ATen/core/Tensor.h>

#include <map>

namespace sinter::test::fuzz {

/// The floating dtype with more digits than this one, where there is one; else the dtype itself.
[[nodiscard]] at::ScalarType wider(at::ScalarType dtype);

/// How far numbers of a dtype lie from each other near zero, where roundings are no share of them; 0 for dtypes whose
/// programs do not come there.
[[nodiscard]] double step_near_zero(at::ScalarType dtype);

/// Floating tensors in the next wider dtype. What shares memory does so there too.
class Widened {
 public:
  [[nodiscard]] at::Tensor of(const at::Tensor& tensor);
  /// What a wide tensor is in a narrower dtype, where it is one of a wider dtype; else the tensor itself. What `of`
  /// gave lies in the memory that it was made from.
  [[nodiscard]] at::Tensor back(const at::Tensor& wide, at::ScalarType dtype);
  /// Writes what was written there, rounded.
  void put_back() const;

 private:
  struct Memory {
    at::Tensor narrow, wide;  ///< all elements of a storage
  };
  std::map<const c10::StorageImpl*, Memory> memories_;
};

}  // namespace sinter::test::fuzz
