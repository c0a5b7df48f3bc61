#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/arg.h"
#include "compiler/ir/op.h"
#include "compiler/ir/op_types.h"

/// The language of Decomposition rows, and their expansion into native ops.
///
///   decomposition = alternative { ";" alternative }
///   alternative   = [ guard { "," guard } ":" ] expression
///   guard         = "{i}=none" | "{i}=3" | "{i}='text'" | "floating" | "half" | "integer" | "boolean" | "unsigned"
///                 | "f16" | "bf16" | "cuda" | "cpu"
///   expression    = "refuse" | logic
///   logic         = comparison { ("&" | "|") comparison }
///   comparison    = sum [ ("==" | "!=" | "<" | "<=" | ">" | ">=") sum ]
///   sum           = product { ("+" | "-") product }
///   product       = factor { ("*" | "/") factor }
///   factor        = "-" factor | number | constant | "none" | "'text'" | "{i}" | name "(" expression {"," ...} ")"
///                 | "rounded" "(" expression ")" | "(" expression ")"
///   constant      = "inf" | "nan" | "pi" | "highest" | "lowest" | "bits"
///
/// `{i}` is the ATen arg at schema position i: a tensor, a number, None or a string. An arg that the call does not have
/// counts as None. Names are rows of the op table, native or decompositions; a decomposition's own `{i}` are the
/// operands it is called with. `/` divides floats (integers: `quotient`). `&` and `|` take bools.
///
/// The first alternative whose guards all hold is taken; "refuse", or no alternative, leaves the ATen call alone.
/// `{i}=3` holds for numbers only, never for tensors. The dtype guards speak of the promoted dtype of the operands
/// ("floating" includes "half"); "cuda" and "cpu" are for what ATen computes otherwise there. `highest` and `lowest`
/// are the finite limits of that dtype, `bits` its width.
///
/// Types. Everything computes in the computation dtype of the outermost op, to which operands are cast, with two
/// exceptions: comparisons give bools, and what stands where a bool is needed (the condition of `where`, the operands
/// of `&` and `|`) becomes one by `!= 0`. A bool used as a number is 0 or 1; ops whose operands are all bools stay
/// bools. Numbers fold: what depends on numbers alone is computed here, a product with 1 is the other factor, and a
/// `where` on a known condition is one of its arms. `rounded` gives what it is given as the promoted dtype of the
/// operands holds it: ATen computes some steps in a half.
namespace sinter::ir {

/// Where expand puts the nodes it makes.
class OpBuilder {
 public:
  virtual ~OpBuilder() = default;
  [[nodiscard]] virtual DType dtype(ValueId value) const = 0;
  /// Whether the value is a tensor without dims on the CPU, which ATen's kernels take as they take a number.
  [[nodiscard]] virtual bool is_number(ValueId value) const = 0;
  /// Whether the nodes are for a CUDA device.
  [[nodiscard]] virtual bool on_cuda() const = 0;
  /// Adds a native op. Operands have the dtypes the op needs: values are cast already, numbers are double for floats,
  /// int64_t for integers, bool for b8. `dtype` is that of the result (`cast` converts to it).
  virtual ValueId add(OpId op, std::vector<Arg> operands, DType dtype) = 0;
};

/// Builds a call of any row, native or not, from ATen args by schema position, and casts the result to
/// `dtypes.result`. Gives a value of that dtype, or a number where nothing depends on a tensor. Nothing where the table
/// has no form for these args (the nodes added until then are dead).
[[nodiscard]] std::optional<Arg> expand(OpId op, std::span<const Arg> args, OpDTypes dtypes, OpBuilder& builder);

/// The parse tree of a decomposition.
struct Expression {
  enum class Kind : uint8_t { arg, number, text, none, highest, lowest, bits, call, rounded, refuse };
  Kind kind = Kind::none;
  uint32_t index = 0;     ///< arg: schema position
  Scalar number = false;  ///< number
  std::string text;       ///< text
  OpId op;                ///< call
  bool logical = false;   ///< call by `&` or `|`: the operands become bools
  std::vector<Expression> operands;
};
struct Guard {
  enum class Kind : uint8_t { none, number, text, floating, half, integer, boolean, is_unsigned, f16, bf16, cuda, cpu };
  Kind kind = Kind::none;
  uint32_t index = 0;
  double number = 0;
  std::string text;
};
struct Alternative {
  std::vector<Guard> guards;
  Expression expression;
};

/// Parses the text of a decomposition. Throws InternalError with the position on bad syntax, unknown names and wrong
/// numbers of operands.
[[nodiscard]] std::vector<Alternative> parse_decomposition(std::string_view text);

/// The parsed decomposition of a row; the whole table is parsed on first use.
[[nodiscard]] const std::vector<Alternative>& alternatives(OpId op);

}  // namespace sinter::ir
