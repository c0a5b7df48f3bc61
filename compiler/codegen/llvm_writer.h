#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "compiler/codegen/sizes.h"
#include "compiler/ir/arg.h"
#include "compiler/ir/type.h"

namespace sinter::codegen {

/// Collects the instructions of one LLVM function and the declarations they need. Operands are text: a name
/// ("%t7") or a constant ("splat (i32 5)").
class LlvmWriter {
 public:
  explicit LlvmWriter(Sizes sizes = Sizes(false)) : sizes_(std::move(sizes)) {}

  /// An i64 operand for a number that sizes decide: the number, or the parameter that holds it, "%n3".
  [[nodiscard]] std::string size(int64_t number);
  /// The same for a number of points or turns.
  [[nodiscard]] std::string count(int64_t number);
  [[nodiscard]] const Sizes& sizes() const { return sizes_; }

  /// Appends one line of the function's body.
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    body_ += "  ";
    fmt::format_to(std::back_inserter(body_), format, std::forward<Args>(args)...);
    body_ += '\n';
  }
  /// Appends `%tN = ...` and returns the name.
  template <class... Args>
  std::string value(fmt::format_string<Args...> format, Args&&... args) {
    std::string name = fresh();
    line("{} = {}", name, fmt::format(format, std::forward<Args>(args)...));
    return name;
  }
  /// Opens a basic block.
  void label(std::string_view name) { fmt::format_to(std::back_inserter(body_), "{}:\n", name); }
  /// Where the next line goes, for `insert`.
  [[nodiscard]] size_t position() const { return body_.size(); }
  /// Puts lines at an earlier position; later positions move.
  void insert(size_t position, std::string_view lines) { body_.insert(position, lines); }
  /// An unused value name.
  std::string fresh() { return fmt::format("%t{}", next_++); }
  /// Adds `declare SIGNATURE` to the module, once.
  void declare(std::string signature) { declarations_.insert(std::move(signature)); }
  /// Adds a function to the module, once.
  void define(std::string definition) { definitions_.insert(std::move(definition)); }

  [[nodiscard]] const std::string& body() const { return body_; }
  [[nodiscard]] const std::set<std::string>& declarations() const { return declarations_; }
  [[nodiscard]] const std::set<std::string>& definitions() const { return definitions_; }

 private:
  std::string body_;
  std::set<std::string> declarations_;
  std::set<std::string> definitions_;
  Sizes sizes_;
  int next_ = 0;
};

/// Type of one element in a register: "float"; b8 is "i1", bf16 the "i16" of its bits.
[[nodiscard]] std::string_view register_type(ir::DType dtype);
/// Type of one element in memory: as in a register, but b8 is "i8".
[[nodiscard]] std::string_view memory_type(ir::DType dtype);
/// "<16 x float>".
[[nodiscard]] std::string vector_of(int64_t lanes, std::string_view element);
/// The suffix LLVM's overloaded intrinsics carry: "v16f32", "f32" for one lane.
[[nodiscard]] std::string intrinsic_suffix(int64_t lanes, std::string_view element);
/// "<i32 0, i32 1, ...>": lane numbers times `factor`.
[[nodiscard]] std::string lane_numbers(int64_t lanes, std::string_view element, int64_t factor = 1);
/// A number as an element of the dtype (no half), as LLVM text: "0x3FE0000000000000", "5", "true". Rounds and wraps
/// as a cast does.
[[nodiscard]] std::string constant(const ir::Scalar& value, ir::DType dtype);

/// Converts a register vector between dtypes as ATen's casts do: halves through f32, rounding to nearest even;
/// u8 through i64; anything to b8 by comparison with zero.
[[nodiscard]] std::string emit_cast(LlvmWriter& out, std::string value, ir::DType from, ir::DType to, int64_t lanes);

}  // namespace sinter::codegen
