#pragma once

#include <cstdint>
#include <optional>
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

  /// constant_pad_nd of a new value of this type, row-major. `pad` holds elements before and after, the last dim first.
  ir::ValueId padded(ir::ValueId value, const ir::Type& type, const std::vector<int64_t>& pad, double number,
                     ir::ScopeId scope);

 private:
  void follow_view(const ir::Node& node);
  void follow_cast(const ir::Node& node);
  void follow_scaling(const ir::Node& node);
  void follow_sum(const ir::Node& node);
  void follow_softmax_gradient(const ir::Node& node);
  /// The node's result is what is seen of `made` without the further elements.
  void replace(const ir::Node& node, ir::ValueId made, Pads pads);
  /// A row-major wide value of the node's first argument; null where there is none.
  [[nodiscard]] const WideValue* first_operand(const ir::Node& node) const;
  /// Adds the call with `first` in place of its first argument, and rows as long as those of `first`.
  ir::ValueId call_again(const ir::Node& node, ir::ValueId first);

  const ir::Graph& old_;
  Rewriter& rewrite_;
  std::unordered_map<ir::ValueId, WideValue> wide_;
};

}  // namespace sinter::passes
