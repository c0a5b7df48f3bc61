#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/codegen/cuda_access.h"
#include "compiler/codegen/cuda_expression.h"
#include "compiler/codegen/cuda_index.h"
#include "compiler/codegen/cuda_lines.h"
#include "compiler/codegen/sizes.h"
#include "compiler/kernel/kernel.h"

namespace sinter::codegen {

/// A function's text, and the values of its parameters n0, n1, ... after the tensors.
struct CudaFunction {
  std::string text;
  std::vector<int64_t> sizes;
};

/// What every writer of a kernel's text needs: lines and blocks, the names of parameters, types, expressions.
class CudaText : protected CudaLines {
 protected:
  CudaText(const kernel::Kernel& kernel, bool wide);

  /// The whole function: `extern "C" __global__ ...`, and the lines written so far as its body.
  /// Where `resident` is not 0, a thread gets no more registers than leave room for so many blocks on a multiprocessor.
  [[nodiscard]] CudaFunction finish(uint32_t block, uint32_t resident = 0) const;

  /// A parameter's name says what it is: in0, scalar1, out2.
  [[nodiscard]] std::string param_name(uint32_t param) const;
  [[nodiscard]] const kernel::Load& load(kernel::Slot slot) const;
  [[nodiscard]] bool is_load(kernel::Slot slot) const;
  /// True for a live load that reads memory, not a number passed by value.
  [[nodiscard]] bool is_memory_load(kernel::Slot slot) const;
  /// The slot as a gather; nullptr for others, and for one that nothing needs.
  [[nodiscard]] const kernel::Gather* gather(kernel::Slot slot) const;
  /// What is added to a gather's index, given a text that names each position's value: " + place_in(v1, 8u) * 64u".
  [[nodiscard]] std::string places(const kernel::Gather& gather, const std::vector<std::string>& names) const;
  /// The type that holds `width` lanes of an access.
  [[nodiscard]] static std::string pack_type(ir::DType dtype, const LaneAccess& access, int64_t width);
  /// A host scalar as a value of the slot's dtype.
  [[nodiscard]] std::string host_scalar(kernel::Slot slot) const;
  /// What computes the slot, given a text that names each operand's value.
  [[nodiscard]] std::string expression(kernel::Slot slot, const std::vector<std::string>& names) const;
  /// What joined with any value of a reduction gives that value, and the text that joins two.
  [[nodiscard]] std::string identity(kernel::Slot reduction) const;
  [[nodiscard]] std::string joined(kernel::Slot reduction, const std::string& a, const std::string& b) const;
  [[nodiscard]] static std::string identity(ir::ReductionId reduction, ir::DType dtype);
  [[nodiscard]] static std::string joined(ir::ReductionId reduction, ir::DType dtype, const std::string& a,
                                          const std::string& b);
  /// The same as a function of two values, which the functions that join threads take.
  [[nodiscard]] std::string joining(kernel::Slot reduction) const;
  /// Gives every position that is more than a name a variable; `first` is the number of the first one.
  void name_all_dims(char letter, size_t first, std::vector<std::string>& dims);
  /// Names this thread's number of `count`: `own`, a text. Where the last block is partial, threads without one take
  /// the last, for they meet the others at barriers, and `stores` is false for them.
  void take_own_or_last(std::string_view name, const std::string& own, const std::string& count, bool partial);
  /// The loops of rows, and those that reductions run over.
  [[nodiscard]] std::span<const int64_t> outer_extents() const;
  [[nodiscard]] std::span<const int64_t> row_extents() const;
  /// What a question where the point with these positions lies gives: whether it is inside, or its position.
  [[nodiscard]] std::string answer(kernel::Slot slot, const std::vector<std::string>& dims) const;
  /// The condition that a guard is: the name it has in `names`, else its text at these positions.
  [[nodiscard]] std::string condition(kernel::Slot guard, const std::vector<std::string>& names,
                                      const std::vector<std::string>& dims) const;
  [[nodiscard]] static std::string parenthesised(const std::string& text);
  /// From here on the pointers that only these loads (by slot) use are told apart from others: the text chooses one of
  /// them and passes that through from_here.
  void choose_addresses_of(const std::vector<bool>& loads);

  /// Outputs that share no memory keep their pointers as they were passed, which takes no registers: for texts whose
  /// stores follow from what they load.
  void take_outputs_as_given();

  const kernel::Kernel& kernel_;
  Sizes sizes_;
  IndexText index_;
  std::vector<Expression> expressions_;
  std::vector<bool> live_;
  std::vector<bool> guards_;  ///< by slot: says where loads may read

 private:
  /// The lines before all others: from them on, memory may be touched.
  [[nodiscard]] std::string beginning() const;

  std::vector<bool> chosen_;  ///< by param: its pointer is not passed through from_here at the beginning
};

}  // namespace sinter::codegen
