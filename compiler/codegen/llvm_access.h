#pragma once

#include <string>

#include "compiler/codegen/llvm_nest.h"
#include "compiler/codegen/llvm_writer.h"

namespace sinter::codegen {

/// The vector of inner indices one step of the loop handles: [index, index + lanes).
struct Step {
  std::string index;  ///< i64: the first inner index
  std::string mask;   ///< <lanes x i1> of the lanes in range; empty when all are
};

/// Emits `base + offset of the row's first element` of an access, given the outer dims' indices (i64 operands).
[[nodiscard]] std::string emit_row_pointer(LlvmWriter& out, const Access& access, std::string_view base,
                                           ir::DType dtype, const std::vector<std::string>& outer);

/// Loads one element and gives it to all lanes: a register vector of the dtype.
[[nodiscard]] std::string emit_splat_load(LlvmWriter& out, std::string_view pointer, ir::DType dtype, int64_t lanes);

/// Gives a scalar operand of the register type to all lanes.
[[nodiscard]] std::string emit_splat(LlvmWriter& out, std::string_view scalar, std::string_view element, int64_t lanes);

/// What loads and stores of one access need to know.
struct AccessSite {
  const Nest& nest;
  const Access& access;
  std::string row_pointer;
  const std::vector<std::string>& outer;  ///< indices of the outer dims, for quasi-affine terms
  ir::DType dtype;
  int64_t lanes;
  std::string guard = {};     ///< of a load: <lanes x i1>, those that read; empty: all
  std::string anywhere = {};  ///< with a guard: pointer to an element that may be read in any case
};

/// True in the lanes of the step where the site's index lies between two numbers: <lanes x i1>.
[[nodiscard]] std::string emit_inside(LlvmWriter& out, const AccessSite& site, const Step& step, int64_t begin,
                                      int64_t end);

/// Loads the step's elements as a register vector. Lanes out of range, and those that do not read, hold 1, a number
/// every op is defined for.
[[nodiscard]] std::string emit_load(LlvmWriter& out, const AccessSite& site, const Step& step);

/// Stores a register vector of the site's dtype to the step's elements.
void emit_store(LlvmWriter& out, const AccessSite& site, const Step& step, std::string value);

/// Stores the first lane of a register vector of the dtype.
void emit_first_lane_store(LlvmWriter& out, std::string_view pointer, ir::DType dtype, std::string value,
                           int64_t lanes);

}  // namespace sinter::codegen
