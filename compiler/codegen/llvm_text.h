#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler/codegen/llvm_math.h"
#include "compiler/codegen/llvm_writer.h"
#include "compiler/kernel/kernel.h"

namespace sinter::codegen {

/// True when every access moves along the innermost dim by one element or not at all.
[[nodiscard]] bool reads_neighbours(const kernel::Kernel& kernel);

/// Elements of one vector: full registers of the dtype that calls vector functions, else of the widest dtype; no more
/// than 16 where they are loaded one by one, because neighbours in the loop are none in memory.
[[nodiscard]] int64_t choose_lanes(const kernel::Kernel& kernel, int vector_bits, bool neighbours);

/// True for an op that is a call, which costs far more than an instruction.
[[nodiscard]] bool is_call(const kernel::Kernel& kernel, kernel::Slot slot);

/// "<i1 true, i1 true, i1 false, ...>": the first `count` lanes.
[[nodiscard]] std::string first_lanes(int64_t count, int64_t lanes);

/// What every writer of a kernel's LLVM text needs: parameters, operands, ops, the function around the body.
class LlvmText {
 public:
  /// What the parameters after the tensors are to hold.
  [[nodiscard]] const std::vector<int64_t>& sizes() const { return out_.sizes().values(); }

 protected:
  LlvmText(const kernel::Kernel& kernel, int vector_bits, int64_t lanes, VectorMath math = VectorMath::as_eager);

  /// Pointers of the params.
  void load_params();
  /// Where a number stands in a nest of loops: an index for each.
  [[nodiscard]] std::vector<std::string> split_index(const std::string& number, std::span<const int64_t> extents);

  /// The slot of an immediate, in all lanes.
  [[nodiscard]] std::string immediate(kernel::Slot slot);
  /// The slot of a load from a host scalar, in all lanes.
  [[nodiscard]] std::string host_scalar(kernel::Slot slot);
  [[nodiscard]] bool is_host_scalar(kernel::Slot slot) const;
  /// The slot of an op on register vectors, given each slot's value.
  [[nodiscard]] std::string compute(kernel::Slot slot, const std::vector<std::string>& values);

  /// True for an op that is a call in this kernel.
  [[nodiscard]] bool stays_call(kernel::Slot slot) const;

  /// The lanes below an i64 count, which is at most `lanes`.
  [[nodiscard]] std::string mask_below(const std::string& count);
  /// The same for a count that may be more than `lanes`.
  [[nodiscard]] std::string mask_up_to(const std::string& count);

  /// The module: declarations, definitions, and the function with the lines written so far.
  [[nodiscard]] std::string finish() const;

  const kernel::Kernel& kernel_;
  const int vector_bits_;
  const int64_t lanes_;
  const VectorMath math_;
  LlvmWriter out_;
  std::vector<std::string> pointers_;  ///< by param

 private:
  [[nodiscard]] std::string size_parameters() const;
};

}  // namespace sinter::codegen
