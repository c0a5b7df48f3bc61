#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "compiler/ir/type.h"

namespace sinter::ir {

struct OpTag;
using OpId = StrongId<OpTag>;  ///< index of a row of the op table

/// How an ATen op's result and computation dtypes follow from its arguments (see op_types.h for the functions).
enum class TypeRule : uint8_t {
  same,        ///< the promoted dtype of the arguments (add, mul, maximum, relu)
  float_like,  ///< the same, integers and bools become the default dtype (exp, div, sigmoid)
  compare,     ///< computes in the promoted dtype, gives b8 (eq, lt, logical_and)
  predicate,   ///< computes in the argument's dtype, gives b8 (isnan, logical_not)
  integral,    ///< integers and bools only; floats are refused (bitwise_and, shifts)
  select,      ///< arg 0 is b8, the others are promoted (where)
  cast,        ///< the node's own result type says it
};

/// Values a test draws for an op, so that it is defined and well-conditioned.
enum class Domain : uint8_t { all_reals, positive, unit_interval, symmetric_unit, at_least_one, nonzero_second, small_shift };

/// One result of a reference function: `double` for floats, `int64_t` for integers and bools.
using RefValue = std::variant<double, int64_t>;
/// Computes one element. `dtype` is the computation dtype; integer results wrap to it. Floats are computed in double.
using Reference = RefValue (*)(std::span<const RefValue> args, DType dtype);

/// LLVM IR templates for one element or one vector. `{r}` is the result, `{t}` the type ("float" or "<16 x float>"),
/// `{0}`.. the operands, `{mask}` the i1 type of the same width; several instructions are separated by newlines and
/// may use temporaries `{r}.a`, `{r}.b`. "call:exp" is a vector maths call by its C name (exp -> Sleef_expf16_u10...),
/// "intrinsic:floor" an LLVM intrinsic overloaded on {t}.
struct LlvmText {
  std::string_view floating;  ///< f32 and f64; empty when the op has no float form
  std::string_view signed_int;
  std::string_view unsigned_int;  ///< u8 and b8 (b8 computes as i8 holding 0 or 1)
};

/// An op that back ends implement.
struct Native {
  Reference reference;
  /// CUDA C++ expression; `{0}`.. are operands (already parenthesised or names), `{t}` the C++ type of the
  /// computation. Overloads for each type live in codegen/cuda_device.cuh.
  std::string_view cuda;
  LlvmText llvm;
};
/// An op that the decompose pass rewrites: an expression over `{0}`, `{1}`, ... (the ATen args by schema position),
/// numbers and names of other rows, e.g. "{0} * sigmoid({0})". Grammar in expression.h.
struct Decomposition {
  std::string_view expression;
};

/// One row of the op table: everything Sinter knows about a pointwise op.
struct OpRow {
  std::string_view name;                      ///< name in the IR, "erf"
  std::span<const std::string_view> aten;     ///< ATen base names "aten::erf"; in-place and out forms are implied
  uint8_t arity;                              ///< ATen args (by schema position) that are operands
  TypeRule rule;
  std::variant<Native, Decomposition> lowering;
  Domain domain;

  [[nodiscard]] bool is_native() const { return std::holds_alternative<Native>(lowering); }
  [[nodiscard]] const Native& native() const { return std::get<Native>(lowering); }
};

[[nodiscard]] std::span<const OpRow> op_table();
[[nodiscard]] const OpRow& row(OpId op);
/// By IR name ("erf").
[[nodiscard]] std::optional<OpId> find_op(std::string_view name);
/// By ATen name without overload ("aten::erf"); trailing underscores of in-place forms are ignored.
[[nodiscard]] std::optional<OpId> find_aten(std::string_view aten_name);
/// By IR name; throws InternalError when the table has no such row. For passes that build a known op.
[[nodiscard]] OpId op_named(std::string_view name);

}  // namespace sinter::ir
