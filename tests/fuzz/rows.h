#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string_view>

/// The operators that random programs are made of: one row each.
namespace sinter::test::fuzz {

enum class Kind { pointwise, cast, reduction, view, library, write, random, read, module, branch };

/// Where an operator is drawn. A GPU refuses an index or a probability out of range by ending the process, so that
/// there another row stands in the place of one that takes them as they come.
enum class On { any, cpu, cuda };

/// An operator. `text` is the C++ expression that `run` evaluates, with t[0], t[1], ... for its tensors and n[0], ...
/// for its numbers.
struct Row {
  Kind kind;
  /// What it is applied to, a letter each. Tensors: x any, f floating point, b bool, k int64, B floating point that
  /// broadcasts with the first, S like the first in dtype and sizes, M to be multiplied with the one before it as
  /// matrices, w floating point whose elements do not overlap. Numbers: d a dimension of the first tensor, i an index
  /// along it, l a length from there, n 1 to 3, r a real number, p a positive one, s the scalar argument of the call.
  const char* pattern;
  const char* text;
  at::Tensor (*run)(std::span<at::Tensor> t, std::span<const double> n);
  On on = On::any;
};

/// Those for the CPU and those for CUDA stand in one order.
[[nodiscard]] std::span<const Row> rows();

/// Rows for calls of modules: they give what the module is called with. The second one keeps indices within an
/// embedding.
[[nodiscard]] const Row& module_row();
[[nodiscard]] const Row& bounded_module_row();

/// The row for branches on a value: run by the interpreter itself.
[[nodiscard]] const Row& branch_row();

/// True for letters of patterns that stand for tensors.
[[nodiscard]] constexpr bool is_tensor(char letter) {
  return std::string_view("xfbkBSMwo").find(letter) != std::string_view::npos;
}

}  // namespace sinter::test::fuzz
