#pragma once

#include <string>
#include <vector>

#include "compiler/kernel/lower.h"

/// Kernels written by hand, as short as a test wants them.
namespace sinter::test {

/// Builds a kernel instruction by instruction. Params are numbered in the order they are added.
class KernelBuilder {
 public:
  KernelBuilder(std::string name, std::vector<int64_t> extents);

  /// An input read at `strides` (one a dim) from `offset`; answers the slot of the loaded value.
  kernel::Slot input(ir::DType dtype, std::vector<int64_t> strides, int64_t offset = 0);
  /// Another read of a param.
  kernel::Slot load(uint32_t param, ir::Index index);
  kernel::Slot host_scalar(ir::DType dtype);
  kernel::Slot number(ir::Scalar value, ir::DType dtype);
  kernel::Slot op(std::string_view name, std::vector<kernel::Slot> operands, ir::DType result);
  kernel::Slot cast(kernel::Slot value, ir::DType to) { return op("cast", {value}, to); }
  /// An output of the dtype, written at `strides`.
  void output(ir::DType dtype, kernel::Slot value, std::vector<int64_t> strides);
  /// An output over the memory of an earlier param.
  void output_in_place(ir::DType dtype, kernel::Slot value, std::vector<int64_t> strides);

  [[nodiscard]] const kernel::Kernel& kernel() const { return kernel_; }
  [[nodiscard]] ir::DType dtype(kernel::Slot slot) const { return kernel_.body[slot].dtype; }

 private:
  kernel::Slot add(kernel::Instruction instruction);
  kernel::Kernel kernel_;
};

/// Row-major strides of a loop nest.
[[nodiscard]] std::vector<int64_t> row_major(const std::vector<int64_t>& extents);

/// A readable spelling of the op, dtypes and layout for traces: the kernel's name.
[[nodiscard]] kernel::Kernel gelu(int64_t numel);
[[nodiscard]] kernel::Kernel add_bias_relu(int64_t rows, int64_t channels, ir::DType dtype);
[[nodiscard]] kernel::Kernel transposed_add(int64_t rows, int64_t columns);

}  // namespace sinter::test
