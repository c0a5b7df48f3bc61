#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compiler/codegen/llvm_access.h"
#include "compiler/codegen/llvm_blocks.h"
#include "compiler/codegen/llvm_rows.h"
#include "compiler/codegen/llvm_text.h"
#include "compiler/codegen/row_passes.h"

namespace sinter::codegen {

/// What the writers of kernels with reduced loops share. Vectors run along the innermost dim of the nest.
class LlvmRowText : public LlvmText {
 protected:
  /// By slot: the operand that holds it.
  using Values = std::vector<std::string>;

  LlvmRowText(const kernel::Kernel& kernel, int vector_bits, const LlvmRowSchedule& schedule, Nest nest);

  /// Opens the function up to block `start`: parameters, memory of kept elements, and what is the same for all rows.
  void open();
  /// Ends the function.
  [[nodiscard]] std::string close();

  /// Where accesses lie, given the indices of all dims but the innermost.
  struct Place {
    std::vector<std::string> dims;
    std::vector<std::string> loads;   ///< by slot
    std::vector<std::string> stores;  ///< by store
    std::vector<std::string> kept;    ///< by slot
  };
  /// The place of a pass's elements, whose kept ones begin `kept_offset` elements (an i64 operand) into their memory.
  [[nodiscard]] Place place_of(const RowPass& pass, std::vector<std::string> dims, const std::string& kept_offset);
  /// The place of a row's own values.
  [[nodiscard]] Place place_of_row(std::vector<std::string> dims);

  /// One vector of elements.
  struct Turn {
    Step step;
    std::string kept_index;  ///< i64: of its first lane in the memory of kept elements
  };
  /// Loads and computes a pass's elements, given the values of the row.
  [[nodiscard]] Values elements(const RowPass& pass, const Place& place, const Turn& turn, Values values);
  void store_elements(const RowPass& pass, const Place& place, const Turn& turn, const Values& values);
  /// Loads and computes values of rows.
  void row_values(const std::vector<kernel::Slot>& slots, const Place& place, const Step& step, Values& values);

  /// What joins the elements of one reduction in every lane.
  struct Accumulator : Carried {
    kernel::Slot reduction = 0;
  };
  /// One that holds nothing yet.
  [[nodiscard]] Accumulator accumulator(kernel::Slot reduction) const;
  /// Joins an element into its accumulator; lanes that the mask leaves out add nothing.
  void accumulate(const Values& values, const std::string& mask, Accumulator& accumulator);
  /// Runs `body` for index = first, first + step, ... In long loops sums begin anew from time to time and are joined
  /// then, so that a lane does not add every element to a far larger number. `turns` is how often the body runs.
  void accumulating_loop(const LlvmBlocks::Loop& loop, int64_t step, int64_t turns,
                         const std::vector<Accumulator*>& accumulators,
                         const std::function<void(const std::string& index)>& body);
  [[nodiscard]] std::string joined(kernel::Slot reduction, const std::string& a, const std::string& b, int64_t lanes);

  [[nodiscard]] AccessSite site(const Access& access, const std::string& pointer, const Place& place) const;
  /// A row's value as the store's param holds it.
  [[nodiscard]] std::string stored(size_t store, const Values& values);

  /// True where a pass goes through the row at all.
  [[nodiscard]] static bool reads_row(const RowPass& pass);

  const int64_t kept_points_;
  Nest nest_;
  RowPasses passes_;
  Values once_;  ///< values that are the same for all rows
  LlvmBlocks blocks_;

 private:
  /// Loads what earlier passes have kept and this one needs.
  void load_kept(const RowPass& pass, const Place& place, const Turn& turn, Values& values);
  [[nodiscard]] AccessSite kept_site(kernel::Slot slot, const Place& place) const;
  [[nodiscard]] std::string identity(kernel::Slot reduction) const;
  /// True for sums and products of floats.
  [[nodiscard]] bool rounds(kernel::Slot reduction) const;
  [[nodiscard]] std::string load(kernel::Slot slot, const Place& place, const Step& step);
  [[nodiscard]] std::string pointer(const Access& access, const std::vector<std::string>& dims);

  Operands operands_;
  std::vector<kernel::Slot> kept_in_;  ///< by slot: whose memory it is kept in
  Access kept_access_{.param = 0, .index = {}, .walk = Walk::contiguous};
};

/// Of kernels whose vectors hold neighbouring points of a row.
[[nodiscard]] LlvmRowFunction llvm_function_along_rows(const kernel::Kernel& kernel, int vector_bits,
                                                       const LlvmRowSchedule& schedule);
/// Of kernels whose vectors hold neighbouring rows.
[[nodiscard]] LlvmRowFunction llvm_function_across_rows(const kernel::Kernel& kernel, int vector_bits,
                                                        const LlvmRowSchedule& schedule);

}  // namespace sinter::codegen
