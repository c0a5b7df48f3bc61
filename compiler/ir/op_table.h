#pragma once

#include <array>

#include "compiler/ir/op.h"
#include "compiler/ir/reference.h"

/// How rows of the op table are written. Every column is a parameter: a row that leaves one out does not compile, and
/// neither does one with an empty name, text or expression.
namespace sinter::ir::table {

using enum TypeRule;
using enum Domain;
using enum WideNumbers;

/// The CUDA column: one text, or one for floats and one for integers and b8.
struct CudaText {
  std::string_view text;
  std::string_view integral;
};

/// Only for `cast`: a conversion depends on two dtypes.
inline constexpr LlvmText written_by_back_ends{};

/// LLVM text: the same for every dtype, for floats only, and for integers and b8.
consteval LlvmText any(std::string_view text) { return {text, text, text, text}; }
consteval LlvmText floats(std::string_view text) { return {text, {}, {}, {}}; }
consteval LlvmText bits(std::string_view text, std::string_view boolean) { return {{}, text, text, boolean}; }
consteval LlvmText bits(std::string_view text) { return bits(text, text); }

/// A string as a template argument, so that texts put together from names stand in static memory.
template <size_t Size>
struct Literal {
  std::array<char, Size> text{};
  consteval Literal(const char (&from)[Size]) {  // NOLINT(google-explicit-constructor): a literal is one
    std::copy_n(from, Size, text.begin());
  }
  [[nodiscard]] constexpr std::string_view view() const { return {text.data(), Size - 1}; }
};

template <Literal... Parts>
inline constexpr auto joined_storage = [] {
  std::array<char, (Parts.view().size() + ... + 0)> all{};
  auto at = all.begin();
  ((at = std::copy(Parts.view().begin(), Parts.view().end(), at)), ...);
  return all;
}();
template <Literal... Parts>
inline constexpr std::string_view joined{joined_storage<Parts...>.data(), joined_storage<Parts...>.size()};

/// One LLVM instruction of two operands; nothing for an empty name.
template <Literal Name>
inline constexpr std::string_view instruction =
    Name.view().empty() ? std::string_view() : joined<"{r} = ", Name, " {t} {0}, {1}">;

/// A binary LLVM instruction by its name for floats, signed and unsigned integers and b8.
template <Literal Float, Literal Signed, Literal Unsigned, Literal Bool>
inline constexpr LlvmText binary{instruction<Float>, instruction<Signed>, instruction<Unsigned>, instruction<Bool>};

/// A comparison by the name of its predicate for floats, signed and unsigned integers; b8 compares as unsigned.
template <Literal Float, Literal Signed, Literal Unsigned>
inline constexpr LlvmText comparison{
    joined<"{r} = fcmp ", Float, " {t} {0}, {1}">, joined<"{r} = icmp ", Signed, " {t} {0}, {1}">,
    joined<"{r} = icmp ", Unsigned, " {t} {0}, {1}">, joined<"{r} = icmp ", Unsigned, " {t} {0}, {1}">};

/// An extreme of floats: {0} where it is `Beyond` {1}, else {1}, and `Nan` where {1} is NaN. An unordered predicate so
/// keeps a NaN of {0}, an ordered one drops it. LLVM's own intrinsics stay away: beside one, LLVM 19 takes any other
/// intrinsic of the same operands (fma, copysign) for an extreme, and ends the process.
template <Literal Beyond, Literal Nan>
inline constexpr std::string_view float_extreme =
    joined<"{r}.beyond = fcmp ", Beyond, " {t} {0}, {1}\n{r}.extreme = select {mask} {r}.beyond, {t} {0}, {t} {1}\n",
           "{r}.nan = fcmp uno {t} {1}, {1}\n{r} = select {mask} {r}.nan, {t} ", Nan, ", {t} {r}.extreme">;

consteval OpRow native(std::string_view name, AtenNames aten, uint8_t arity, TypeRule rule, Reference reference,
                       CudaText cuda, LlvmText llvm, Domain domain) {
  if (name.empty() || arity == 0 || cuda.text.empty()) throw "incomplete row";
  const bool has_llvm = !(llvm.floating.empty() && llvm.signed_int.empty() && llvm.boolean.empty());
  if (!has_llvm && rule != TypeRule::cast) throw "a native row needs LLVM text";
  if (llvm.signed_int.empty() != llvm.unsigned_int.empty()) throw "integer forms come in pairs";
  return {name, aten, arity, rule, Native{reference, cuda.text, cuda.integral, llvm}, domain};
}

/// A float function of one operand that goes by one name everywhere: ATen, C, CUDA and SLEEF.
template <Literal Name, double (*F)(double)>
consteval OpRow maths(Domain domain, AtenNames aten = {joined<"aten::", Name>}) {
  return native(Name.view(), aten, 1, float_like, ref::floats<F>, {joined<Name, "({0})">, {}},
                floats(joined<"call:", Name>), domain);
}

consteval OpRow derived(std::string_view name, AtenNames aten, uint8_t arity, TypeRule rule,
                        std::string_view expression, Domain domain) {
  if (name.empty() || arity == 0 || expression.empty()) throw "incomplete row";
  return {name, aten, arity, rule, Decomposition{expression}, domain};
}

/// A row whose ATen kernels take a number among half operands at f32.
consteval OpRow with_wide_numbers(WideNumbers where, OpRow row) {
  row.wide_numbers = where;
  return row;
}

/// A row whose ATen kernel for the CPU rounds numbers beyond its operands to half as well.
consteval OpRow with_rounded_attributes(OpRow row) {
  row.rounds_attributes = true;
  return row;
}

}  // namespace sinter::ir::table
