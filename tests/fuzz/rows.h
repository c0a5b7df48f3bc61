#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string_view>

/// The operators that random programs are made of: one row each.
namespace sinter::test::fuzz {

enum class Kind {
  pointwise,
  cast,
  reduction,
  view,
  library,
  spatial,  ///< convolutions, pooling, resizing
  integer,
  complex,
  write,
  random,
  read,
  module,
  control,
  host,  ///< what the host code keeps is changed
};

/// What an instruction does with the blocks of instructions in it. A loop's value is its operand before the first turn
/// and what the block gives after every turn; the value of the others is that of the block that ran.
enum class Control {
  none,
  branch,       ///< the first block where the row's condition holds, else the second
  loop,         ///< the block, so many times
  until,        ///< the block while the row's condition holds, at most kMostTurns times
  autocast,     ///< the block, under autocast
  side_stream,  ///< the block, on another stream; the current one waits for it
  every,        ///< as branch, by the number of the call
  coin,         ///< as branch, by a random number of the host
  flagged,      ///< as branch, by the flag of the host
  turns,        ///< as loop; how often depends on the number of the call
  grad_mode,    ///< the block, with grad mode as the flag of the host says
};

/// What an instruction does to what the host code keeps from call to call. It has no result.
enum class Effect {
  none,
  hold,      ///< the variable of a closed-over tensor holds what the row gives from now on
  exchange,  ///< so it does, and the second variable what the first one held
  swap,      ///< of two variables
  drop,      ///< the program lets go of a value
  flag,      ///< becomes what the row says
  train,     ///< a module's mode becomes the flag
  rate,      ///< of the optimizer: that of the call
  fail,      ///< throws, in some calls
};

constexpr int kMostTurns = 4;

/// Where an operator is drawn. A GPU refuses an index or a probability out of range by ending the process, so that
/// there another row stands in the place of one that takes them as they come.
enum class On { any, cpu, cuda };

/// An operator. `text` is the C++ expression that `run` evaluates, with t[0], t[1], ... for its tensors and n[0], ...
/// for its numbers.
struct Row {
  Kind kind;
  /// What it is applied to, a letter each. Tensors: x any, a any but complex, f floating point, g floating point with
  /// three dimensions or more, q floating point that is not empty, b bool, k int64, j integers, c complex; B floating
  /// point, J integers and C complex that broadcast with the first; S like the first in dtype and sizes, T as well and
  /// without elements that overlap; M to be multiplied with the one before it as matrices; to be written, without
  /// elements that overlap: w floating point, y integers, z complex; h the variable of a closed-over tensor, H another
  /// one like the first; v a value that instructions gave. Numbers: d a dimension of the first tensor, i an index along
  /// it, l a length from there, n 1 to 3, r a real number, p a positive one, s the scalar argument of the call, m a
  /// period of 2 to 5 calls, e one of them.
  const char* pattern;
  const char* text;
  at::Tensor (*run)(std::span<at::Tensor> t, std::span<const double> n);
  On on = On::any;
  Control control = Control::none;
  Effect effect = Effect::none;
};

/// Those for the CPU and those for CUDA stand in one order.
[[nodiscard]] std::span<const Row> rows();

/// Rows for calls of modules: they give what the module is called with. The second one keeps indices within an
/// embedding.
[[nodiscard]] const Row& module_row();
[[nodiscard]] const Row& bounded_module_row();

/// Rows with blocks: their text is the condition or the mode; the interpreter runs them.
[[nodiscard]] std::span<const Row> control_rows();

/// Rows that change what the host code keeps. Those with an effect are run by the interpreter.
[[nodiscard]] std::span<const Row> host_rows();

/// True for letters of patterns that stand for tensors.
[[nodiscard]] constexpr bool is_tensor(char letter) {
  return std::string_view("xafgqbkjcBJCSTMwyzhHv").find(letter) != std::string_view::npos;
}

}  // namespace sinter::test::fuzz
