#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/passes/rewriter.h"

/// Values of which pad_products makes a second one with longer rows.
namespace sinter::passes {

/// What further elements of a row hold.
enum class Pads : uint8_t {
  zeros,
  products,  ///< with zeros: NaN where the row, or what it was multiplied from, is not finite
  minus_infinity,
};

/// A value with further elements at the end of its rows, row-major, or seen with the last two dims exchanged.
struct WideValue {
  ir::ValueId value;
  Pads pads = Pads::zeros;
  bool turned = false;
};

/// Follows longer rows from one product of halves to the next through what stands between them in attention and its
/// gradients: views, casts, scaling, biases and masks, the softmax along rows and its gradient. Who reads a narrow
/// value reads a part of the wide one; what nobody reads is dropped by dce.
class WideRows {
 public:
  WideRows(const ir::Graph& old, Rewriter& rewrite) : old_(old), rewrite_(rewrite) {}

  /// The wide value of an old one; null where it has none.
  [[nodiscard]] const WideValue* find(ir::ValueId old) const;
  void note(ir::ValueId old, WideValue wide) { wide_[old] = wide; }
  /// Replaces a node that has been copied by one of wide operands, where it has some.
  void follow(const ir::Node& node);
  /// Makes softmax(x) of rows with `more` further elements, which are zeros then.
  void widen_softmax(const ir::Node& node, int64_t more);

  /// Has a copy of what is seen of `made` in place of an old value.
  void show(ir::ValueId old, ir::ValueId made, ir::Type seen, ir::ScopeId scope);
  /// constant_pad_nd of a new value of this type, row-major. `pad` holds elements before and after, the last dim first.
  ir::ValueId padded(ir::ValueId value, const ir::Type& type, const std::vector<int64_t>& pad, double number,
                     ir::ScopeId scope);

 private:
  void follow_view(const ir::Node& node);
  void follow_cast(const ir::Node& node);
  void follow_scaling(const ir::Node& node);
  void follow_sum(const ir::Node& node);
  void follow_softmax_gradient(const ir::Node& node);
  /// A row-major wide value of the node's first argument; null where there is none.
  [[nodiscard]] const WideValue* first_operand(const ir::Node& node) const;
  /// An old value with rows of `row` elements, the further ones this number.
  ir::ValueId lengthened(ir::ValueId old, int64_t row, double number, ir::ScopeId scope);
  /// Elements of a row of a new value.
  [[nodiscard]] int64_t row_of(ir::ValueId made) const;
  /// The node's arguments with `first` in place of the first one.
  [[nodiscard]] std::vector<ir::Arg> with_first(const ir::Node& node, ir::ValueId first) const;
  /// Adds the call with these arguments, and rows as long as those of the first one, in place of the node's result.
  void call_again(const ir::Node& node, std::vector<ir::Arg> args, Pads pads);

  const ir::Graph& old_;
  Rewriter& rewrite_;
  std::unordered_map<ir::ValueId, WideValue> wide_;
};

}  // namespace sinter::passes
