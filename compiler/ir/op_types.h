#pragma once

#include <optional>
#include <span>

#include "compiler/ir/arg.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/op.h"

/// ATen's type promotion.
namespace sinter::ir {

/// An operand as at::result_type sees it: tensors with dims come before 0-dim tensors, those before numbers.
struct PromotionArg {
  enum class Category : uint8_t { tensor, zero_dim, number };
  DType dtype = DType::f32;
  Category category = Category::tensor;
};

/// c10::promoteTypes: the smallest dtype that both convert to. `other` when there is none.
[[nodiscard]] DType promote(DType a, DType b);

/// at::result_type. A floating number counts as the default dtype; a later category only matters where its kind
/// (bool, integer, float, complex) is higher. `other` for no operands.
[[nodiscard]] DType result_dtype(std::span<const PromotionArg> operands, DType default_dtype = DType::f32);

/// The dtype halves compute in: f32; others are their own.
[[nodiscard]] constexpr DType computation_dtype(DType dtype) { return is_half(dtype) ? DType::f32 : dtype; }

/// True for what may say where an element lies.
[[nodiscard]] constexpr bool is_position(DType dtype) { return dtype == DType::i64 || dtype == DType::i32; }

/// The dtypes of one call of a pointwise op.
struct OpDTypes {
  DType operands = DType::f32;  ///< what the operands are promoted to; may be half
  DType result = DType::f32;
  bool round_numbers = false;  ///< numbers among half operands are rounded to half first, else taken at f32
  [[nodiscard]] DType computation() const { return computation_dtype(operands); }
};

/// Dtypes by the op's type rule. Nothing where ATen refuses the operands (floats in bitwise_and) or no kernel touches
/// them (complex). Rule `cast` takes the operand's dtype for both: the call's recorded result says what it becomes.
[[nodiscard]] std::optional<OpDTypes> op_dtypes(TypeRule rule, std::span<const PromotionArg> operands,
                                                DType default_dtype = DType::f32);

/// A value, number or dtype-less argument as promotion sees it; nothing for None and attributes.
[[nodiscard]] std::optional<PromotionArg> promotion_arg(const Graph& graph, const Arg& arg);

/// The same for a call of `op`: takes its leading `arity` args.
[[nodiscard]] std::optional<OpDTypes> op_dtypes(const Graph& graph, OpId op, std::span<const Arg> args,
                                                DType default_dtype = DType::f32);

/// True where eager throws for some operand values, which a generated kernel cannot: integer division and remainder
/// on the CPU by a tensor or by zero. Such a call has to stay a call.
[[nodiscard]] bool may_throw(OpId op, std::span<const Arg> args, DType operands, Device::Kind device);

}  // namespace sinter::ir
