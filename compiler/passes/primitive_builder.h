#pragma once

#include <string_view>
#include <vector>

#include "compiler/passes/decompose_rules.h"

namespace sinter::passes {

/// Adds the primitives, reductions and views of one call, in its scope. Arithmetic is in one dtype, which is no half.
/// What has the sizes of a result or of a dense operand of the call gets its strides, so that none needs another layout
/// should it have to be stored.
class PrimitiveBuilder {
 public:
  PrimitiveBuilder(ir::Graph& graph, const CallSite& site, ir::DType compute);

  /// What has these sizes from here on gets these strides.
  void lay_out(const ir::Type& dense) { layouts_.insert(layouts_.begin(), dense); }

  /// A value of the call's arguments or of this builder.
  [[nodiscard]] const ir::Type& type(const ir::Arg& value) const { return graph_.type(*value.value()); }

  /// An op of the table by its name, on values and numbers that broadcast; its result is in the computation dtype.
  ir::Arg op(std::string_view name, std::vector<ir::Arg> operands);
  /// The same for an op that gives b8.
  ir::Arg test(std::string_view name, std::vector<ir::Arg> operands);

  /// The value in another dtype; the value itself where it has it.
  ir::Arg cast(const ir::Arg& value, ir::DType dtype);
  /// The value in the computation dtype.
  ir::Arg wide(const ir::Arg& value) { return cast(value, compute_); }
  /// The value in the computation dtype, rounded as if `dtype` had stored it.
  ir::Arg rounded(const ir::Arg& value, ir::DType dtype) { return wide(cast(value, dtype)); }

  /// A reduction by its name. The dims stay, with size 1.
  ir::Arg reduce(std::string_view name, const ir::Arg& value, const std::vector<uint32_t>& dims);

  /// The value at these positions along a dim; its other sizes are the positions', or 1.
  ir::Arg gather(const ir::Arg& value, const ir::Arg& positions, uint32_t dim);
  /// Where an element lies along a dim, in the computation dtype: i64 or i32.
  ir::Arg position(std::vector<ir::Dim> sizes, uint32_t dim);

  /// The elements of a value, from its first, with other sizes and strides.
  ir::Arg view(const ir::Arg& value, std::vector<ir::Dim> sizes, std::vector<ir::Dim> strides);
  /// The elements of a row-major value with other row-major sizes.
  ir::Arg reshape(const ir::Arg& value, const std::vector<ir::Dim>& sizes);

  /// The value, in memory of its own, with exactly this type. The sizes may differ from the value's where the memory of
  /// both is the same: by dims of size 1, and where both are row-major.
  ir::ValueId result(const ir::Arg& value, const ir::Type& observed);

 private:
  [[nodiscard]] ir::Type laid_out(ir::DType dtype, std::vector<ir::Dim> sizes) const;
  ir::Arg add(std::string_view name, std::vector<ir::Arg> operands, ir::DType dtype);

  ir::Graph& graph_;
  const CallSite& site_;
  ir::DType compute_;
  size_t first_new_;               ///< values from here on are this builder's
  std::vector<ir::Type> layouts_;  ///< dense types whose strides are wanted for their sizes
};

}  // namespace sinter::passes
