#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "compiler/ir/op.h"
#include "compiler/ir/type.h"

namespace sinter::ir {

/// A tensor of the interpreter: elements as the reference functions give them, addressed by the type's strides.
/// Views share the storage.
struct HostTensor {
  Type type;  ///< static
  std::shared_ptr<std::vector<RefValue>> storage;
  int64_t offset = 0;  ///< of the first element in the storage

  /// Element i[0], i[1], ... Throws InternalError outside the storage.
  [[nodiscard]] RefValue at(std::span<const int64_t> point) const;
  void set(std::span<const int64_t> point, RefValue value);
};

/// A tensor of its own with every element 0.
[[nodiscard]] HostTensor zeros(const Type& type);
/// A tensor of its own from its elements in row-major order, each rounded or wrapped to the dtype. Throws InternalError
/// when their number is not the type's.
[[nodiscard]] HostTensor tensor_of(const Type& type, std::span<const RefValue> elements);
/// Elements in row-major order of the sizes, whatever the strides.
[[nodiscard]] std::vector<RefValue> elements_of(const HostTensor& tensor);

/// Calls `visit` for every point of a nest, last dim fastest.
void for_each_point(std::span<const int64_t> extents, const std::function<void(std::span<const int64_t>)>& visit);

/// The value as a tensor of this dtype stores it: floats rounded to nearest even, integers wrapped.
[[nodiscard]] RefValue stored(const RefValue& value, DType dtype);

}  // namespace sinter::ir
