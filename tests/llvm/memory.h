#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/op.h"
#include "compiler/kernel/lower.h"

/// Plain memory for kernels' params, and the reference every kernel is compared with.
namespace sinter::test {

/// Elements of one dtype; read and written as the reference functions see them.
class Buffer {
 public:
  Buffer(ir::DType dtype, int64_t elements);

  [[nodiscard]] ir::RefValue get(int64_t element) const;
  void set(int64_t element, const ir::RefValue& value);
  [[nodiscard]] void* data() { return bytes_.data(); }
  [[nodiscard]] const void* data() const { return bytes_.data(); }
  [[nodiscard]] ir::DType dtype() const { return dtype_; }
  [[nodiscard]] int64_t size() const;
  bool operator==(const Buffer&) const = default;

 private:
  ir::DType dtype_;
  std::vector<unsigned char> bytes_;
};

/// Elements each param must hold for the kernel's accesses.
[[nodiscard]] std::vector<int64_t> param_sizes(const kernel::Kernel& kernel);

/// Runs the kernel point by point with the op table's reference functions, rounding every value to its dtype. Host
/// scalars are one element of their dtype.
void run_reference(const kernel::Kernel& kernel, std::vector<Buffer>& params);

}  // namespace sinter::test
