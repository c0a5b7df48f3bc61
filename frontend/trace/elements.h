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
  /// The same as `*this == Elements::of(tensor)`, without making one, for a tensor that lies so many bytes further
  /// behind in its storage.
  [[nodiscard]] bool are_those_of(const at::Tensor& tensor, int64_t shift = 0) const;
  [[nodiscard]] ir::Type type(c10::Device device) const;
  /// Where the first one lies in a storage that holds them all so many bytes further behind, in elements.
  [[nodiscard]] int64_t offset_behind(int64_t shift) const {
    return offset + shift / static_cast<int64_t>(c10::elementSize(dtype));
  }
  [[nodiscard]] int64_t begin_byte() const;
  [[nodiscard]] int64_t end_byte() const;  ///< one past the last byte touched; begin_byte() when empty
  bool operator==(const Elements&) const = default;
};

/// A tensor without autograd's history over a storage, so many bytes behind where its elements say.
[[nodiscard]] at::Tensor tensor_over(c10::Storage storage, const Elements& elements, c10::Device device,
                                     int64_t shift = 0);

}  // namespace sinter::frontend
