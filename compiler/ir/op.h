#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
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
  same,        ///< the promoted dtype of the operands (add, mul, maximum, relu)
  floating,    ///< the same, floats only; other dtypes are refused (gelu, lerp)
  float_like,  ///< the same, integers and bools become the default dtype (exp, div, sigmoid)
  compare,     ///< computes in the promoted dtype, gives b8 (eq, lt, logical_and)
  predicate,   ///< computes in the argument's dtype, gives b8 (isnan, logical_not)
  integral,    ///< integers and bools only; floats are refused (bitwise_and, shifts)
  select,      ///< arg 0 is b8, the others are promoted (where)
  cast,        ///< the node's own result type says it
};

/// Values a test draws for an op, so that it is defined and well-conditioned.
enum class Domain : uint8_t {
  all_reals,
  positive,
  unit_interval,
  symmetric_unit,
  at_least_one,
  nonzero_second,
  small_shift
};

/// One result of a reference function: `double` for floats, `int64_t` for integers and bools (0 or 1).
using RefValue = std::variant<double, int64_t>;
/// Computes one element. `dtype` is the computation dtype (for `cast` the dtype to convert to); integer results wrap to
/// it. Floats are computed in double; who needs an f32 rounds the result.
using Reference = RefValue (*)(std::span<const RefValue> args, DType dtype);

/// LLVM IR templates of one op, by the class of the computation dtype; an empty text means that the op has no such
/// form. A text is one of
///   "call:NAME"        a maths function by its C name: "call:exp" is SLEEF's vector function (Sleef_expf16_u10avx512f,
///                      Sleef_expd4_u10avx2) where there is one, else libm's (expf, exp) for every lane. Operands in
///                      order.
///   "intrinsic:NAME"   an LLVM intrinsic overloaded on the type: "floor" -> @llvm.floor.v16f32. Operands in order.
///   "inverse:NAME"     1 divided by what that intrinsic gives.
///   "scalar:NAME"      libm's function called for every lane (NAMEf for f32).
///   instructions       one or several, separated by newlines, with these placeholders:
///       {r}            the result; temporaries are {r}.a, {r}.b, ...
///       {0} {1} {2}    the operands: registers or constants of the type
///       {t}            the type of the operands (for `where`: of operands 1 and 2), "float" or "<16 x float>"
///       {mask}         i1 or <16 x i1>, the type of b8 values
/// A b8 value is an i1 (or a vector of them) in registers and an i8 holding 0 or 1 in memory. Ops of rule compare and
/// predicate give an i1 whatever their operands. `zeroinitializer` is the zero of scalars and vectors alike. No
/// fast-math flags: NaN and signed zero behave as in ATen.
/// The row `cast` has no template: a conversion depends on two types, and back ends write it themselves.
struct LlvmText {
  std::string_view floating;      ///< f32 and f64
  std::string_view signed_int;    ///< i64 i32 i16 i8
  std::string_view unsigned_int;  ///< u8
  std::string_view boolean;       ///< b8, as i1
};

/// An op that back ends implement. Operands are of the computation dtype (f32, f64, an integer type or b8; halves are
/// cast before and after), except for operand 0 of `where`, which is b8.
struct Native {
  Reference reference;
  /// CUDA C++ expression; `{0}`.. are operands (already parenthesised or names), `{t}` the C++ type of the
  /// computation. Overloads for each type live in codegen/cuda_device.cuh. The result may be wider than `{t}` (C++
  /// promotes small integers): assign it to a variable of the result type.
  std::string_view cuda;
  /// The same for integers and b8 where signed overflow would be undefined; empty when `cuda` serves them too.
  std::string_view cuda_integral;
  LlvmText llvm;

  [[nodiscard]] constexpr std::string_view cuda_text(DType computation) const {
    return is_float(computation) || cuda_integral.empty() ? cuda : cuda_integral;
  }
  [[nodiscard]] constexpr std::string_view llvm_text(DType computation) const {
    if (is_float(computation)) return llvm.floating;
    if (computation == DType::b8) return llvm.boolean;
    return computation == DType::u8 ? llvm.unsigned_int : llvm.signed_int;
  }
};
/// An op that the decompose pass rewrites: an expression over `{0}`, `{1}`, ... (the ATen args by schema position),
/// numbers and names of other rows, e.g. "{0} * sigmoid({0})". Grammar in expression.h.
struct Decomposition {
  std::string_view expression;
};

/// A few ATen names, kept in the row itself.
class AtenNames {
 public:
  constexpr AtenNames(std::initializer_list<std::string_view> names) : count_(names.size()) {
    std::copy(names.begin(), names.end(), names_.begin());
  }
  [[nodiscard]] constexpr const std::string_view* begin() const { return names_.data(); }
  [[nodiscard]] constexpr const std::string_view* end() const { return names_.data() + count_; }
  [[nodiscard]] constexpr size_t size() const { return count_; }
  [[nodiscard]] constexpr bool empty() const { return count_ == 0; }

 private:
  std::array<std::string_view, 4> names_;
  size_t count_;
};

/// Where ATen's kernels take a number among half operands at f32; elsewhere they round it to the half first. Measured
/// on LibTorch 2.11's kernels, on CPUs and an H200.
enum class WideNumbers : uint8_t { nowhere, on_cuda, everywhere };

/// One row of the op table: everything Sinter knows about a pointwise op.
struct OpRow {
  std::string_view name;  ///< name in the IR, "erf"
  /// ATen names: "aten::erf" stands for every overload, "aten::div.Tensor_mode" for one; in-place forms are implied.
  /// Empty for rows that only other rows refer to.
  AtenNames aten;
  uint8_t arity;  ///< leading ATen args that are operands: they take part in type promotion and may be tensors
  TypeRule rule;
  std::variant<Native, Decomposition> lowering;
  Domain domain;
  WideNumbers wide_numbers = WideNumbers::nowhere;
  /// Where it rounds numbers, it rounds those beyond the operands too (alpha).
  bool rounds_attributes = false;

  [[nodiscard]] constexpr bool is_native() const { return std::holds_alternative<Native>(lowering); }
  [[nodiscard]] constexpr const Native& native() const { return std::get<Native>(lowering); }
  [[nodiscard]] constexpr const Decomposition& decomposition() const { return std::get<Decomposition>(lowering); }
};

[[nodiscard]] std::span<const OpRow> op_table();
[[nodiscard]] const OpRow& row(OpId op);
/// By IR name ("erf").
[[nodiscard]] std::optional<OpId> find_op(std::string_view name);
/// By ATen name, with its overload or without ("aten::erf", "aten::div.Tensor_mode"): a row of that overload, else one
/// of all overloads. The trailing underscore of in-place forms is ignored.
[[nodiscard]] std::optional<OpId> find_aten(std::string_view aten_name);
/// By IR name; throws InternalError when the table has no such row. For passes that build a known op.
[[nodiscard]] OpId op_named(std::string_view name);

}  // namespace sinter::ir
