#include "compiler/ir/op_types.h"

#include <algorithm>
#include <array>

#include "compiler/ir/reference.h"

namespace sinter::ir {

namespace {

constexpr size_t kernel_dtypes = 10;

using enum DType;

/// Rows and columns in the order f64 f32 f16 bf16 i64 i32 i16 i8 u8 b8.
constexpr std::array<std::array<DType, kernel_dtypes>, kernel_dtypes> promotions{{
    {f64, f64, f64, f64, f64, f64, f64, f64, f64, f64},
    {f64, f32, f32, f32, f32, f32, f32, f32, f32, f32},
    {f64, f32, f16, f32, f16, f16, f16, f16, f16, f16},
    {f64, f32, f32, bf16, bf16, bf16, bf16, bf16, bf16, bf16},
    {f64, f32, f16, bf16, i64, i64, i64, i64, i64, i64},
    {f64, f32, f16, bf16, i64, i32, i32, i32, i32, i32},
    {f64, f32, f16, bf16, i64, i32, i16, i16, i16, i16},
    {f64, f32, f16, bf16, i64, i32, i16, i8, i16, i8},
    {f64, f32, f16, bf16, i64, i32, i16, i16, u8, u8},
    {f64, f32, f16, bf16, i64, i32, i16, i8, u8, b8},
}};

bool is_complex(DType dtype) { return dtype == c64 || dtype == c128; }

/// The complex dtype that holds a real one; `other` for f16, whose complex form no kernel knows.
DType to_complex(DType dtype) {
  if (dtype == f64 || dtype == c128) return c128;
  return dtype == f16 ? other : c64;
}

/// One dtype of each category, where there is one.
using Categories = std::array<std::optional<DType>, 3>;

std::optional<DType> combine(std::optional<DType> higher, std::optional<DType> lower) {
  if (!higher) return lower;
  if (!lower || is_complex(*higher)) return higher;
  if (is_float(*higher)) return is_complex(*lower) ? to_complex(*higher) : *higher;
  if (*higher == b8 || is_float(*lower) || is_complex(*lower)) return promote(*higher, *lower);
  return higher;
}

DType number_dtype(DType dtype, DType default_dtype) {
  if (is_complex(dtype)) return to_complex(default_dtype);
  return is_float(dtype) ? default_dtype : dtype;
}

}  // namespace

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (a == other || b == other) return other;
  if (is_complex(a) && is_complex(b)) return c128;
  if (is_complex(a) || is_complex(b)) {
    const DType real = is_complex(a) ? b : a;
    return a == c128 || b == c128 || real == f64 ? c128 : c64;
  }
  return promotions[static_cast<size_t>(a)][static_cast<size_t>(b)];
}

DType result_dtype(std::span<const PromotionArg> operands, DType default_dtype) {
  Categories categories;
  for (const PromotionArg& operand : operands) {
    const bool number = operand.category == PromotionArg::Category::number;
    const DType dtype = number ? number_dtype(operand.dtype, default_dtype) : operand.dtype;
    auto& slot = categories[static_cast<size_t>(operand.category)];
    slot = slot ? promote(*slot, dtype) : dtype;
  }
  return combine(categories[0], combine(categories[1], categories[2])).value_or(other);
}

std::optional<OpDTypes> op_dtypes(TypeRule rule, std::span<const PromotionArg> operands, DType default_dtype) {
  if (rule == TypeRule::select && !operands.empty()) {
    if (operands[0].dtype != b8 && operands[0].dtype != u8) return std::nullopt;
    operands = operands.subspan(1);
  }
  const DType promoted = result_dtype(operands, default_dtype);
  if (!is_kernel_dtype(promoted)) return std::nullopt;
  switch (rule) {
    case TypeRule::same:
    case TypeRule::select:
    case TypeRule::cast:
      return OpDTypes{promoted, promoted};
    case TypeRule::floating:
      return is_float(promoted) ? std::optional(OpDTypes{promoted, promoted}) : std::nullopt;
    case TypeRule::float_like: {
      const DType real = is_float(promoted) ? promoted : default_dtype;
      return OpDTypes{real, real};
    }
    case TypeRule::compare:
    case TypeRule::predicate:
      return OpDTypes{promoted, b8};
    case TypeRule::integral:
      return is_float(promoted) ? std::nullopt : std::optional(OpDTypes{promoted, promoted});
  }
  return std::nullopt;
}

std::optional<PromotionArg> promotion_arg(const Graph& graph, const Arg& arg) {
  using enum PromotionArg::Category;
  if (const ValueId* value = arg.value()) {
    const Type& type = graph.type(*value);
    return PromotionArg{type.dtype, type.rank() == 0 ? zero_dim : tensor};
  }
  if (std::holds_alternative<bool>(arg.data)) return PromotionArg{b8, number};
  if (std::holds_alternative<int64_t>(arg.data)) return PromotionArg{i64, number};
  if (std::holds_alternative<double>(arg.data)) return PromotionArg{f64, number};
  return std::nullopt;
}

std::optional<OpDTypes> op_dtypes(const Graph& graph, OpId op, std::span<const Arg> args, DType default_dtype) {
  const OpRow& entry = row(op);
  std::vector<PromotionArg> operands;
  for (const Arg& arg : args.first(std::min<size_t>(entry.arity, args.size()))) {
    if (const auto operand = promotion_arg(graph, arg)) operands.push_back(*operand);
  }
  auto dtypes = op_dtypes(entry.rule, operands, default_dtype);
  if (!dtypes || !is_half(dtypes->operands)) return dtypes;
  const bool on_cuda = graph.device.kind == Device::Kind::cuda;
  dtypes->round_numbers =
      entry.wide_numbers == WideNumbers::nowhere || (entry.wide_numbers == WideNumbers::on_cuda && !on_cuda);
  return dtypes;
}

bool may_throw(OpId op, std::span<const Arg> args, DType operands, Device::Kind device) {
  if (device != Device::Kind::cpu || is_float(operands)) return false;
  if (row(op).domain != Domain::nonzero_second || row(op).rule == TypeRule::float_like || args.size() < 2) return false;
  const Arg& divisor = args[1];
  if (const auto* number = std::get_if<int64_t>(&divisor.data)) return *number == 0;
  if (const auto* number = std::get_if<double>(&divisor.data)) return ref::to_integer(*number, operands) == 0;
  const auto* flag = std::get_if<bool>(&divisor.data);
  return flag == nullptr || !*flag;
}

}  // namespace sinter::ir
