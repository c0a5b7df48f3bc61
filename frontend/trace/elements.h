#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <cstdint>

#include "compiler/ir/reading.h"
#include "compiler/ir/type.h"

namespace sinter::frontend {

/// Where a tensor's elements lie in its storage, and how it reads them.
struct Elements {
  at::ScalarType dtype{};
  int64_t offset = 0;  ///< of the first one, in elements
  c10::SmallVector<int64_t, 5> sizes{}, strides{};
  ir::Reading reading;

  [[nodiscard]] static Elements of(const at::Tensor& tensor);
  /// The same as `*this == Elements::of(tensor)`, without making one.
  [[nodiscard]] bool are_those_of(const at::Tensor& tensor) const;
  [[nodiscard]] ir::Type type(c10::Device device) const;
  [[nodiscard]] int64_t begin_byte() const;
  [[nodiscard]] int64_t end_byte() const;  ///< one past the last byte touched; begin_byte() when empty
  bool operator==(const Elements&) const = default;
};

/// A tensor without autograd's history over a storage.
[[nodiscard]] at::Tensor tensor_over(c10::Storage storage, const Elements& elements, c10::Device device);

}  // namespace sinter::frontend
