#include "compiler/passes/wide_rows.h"

#include <limits>
#include <optional>
#include <utility>

#include "compiler/ir/op.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/batched_product.h"

namespace sinter::passes {

using namespace ir;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool is_number(const Graph& graph, const Arg& arg) {
  if (arg.value() != nullptr) return graph.type(*arg.value()).rank() == 0;
  return std::holds_alternative<double>(arg.data) || std::holds_alternative<int64_t>(arg.data);
}

/// The type that shows whole rows of a row-major value, of `row` elements each, if those get `wide` elements; nothing
/// where the view tears rows apart.
std::optional<Type> with_wide_rows(Type type, int64_t row, int64_t wide) {
  for (size_t d = 0; d < type.rank(); ++d) {
    const int64_t stride = type.strides[d].constant();
    if (type.sizes[d] == Dim(1)) continue;
    if (stride == 1 && type.sizes[d] == Dim(row)) {
      type.sizes[d] = wide;
    } else if (stride % row == 0) {
      type.strides[d] = stride / row * wide;
    } else {
      return std::nullopt;
    }
  }
  return type;
}

}  // namespace

const WideValue* WideRows::find(ValueId old) const {
  const auto found = wide_.find(old);
  return found == wide_.end() ? nullptr : &found->second;
}

void WideRows::follow(const Node& node) {
  if (node.as<View>() != nullptr) return follow_view(node);
  const bool computes = node.as<Call>() != nullptr && node.results.size() == 1;
  if (!computes || !old_.type(node.results[0]).is_contiguous()) return;
  if (call_named(node, "aten::_to_copy", 7) != nullptr) return follow_cast(node);
  if (call_named(node, "aten::add.Tensor", 3) != nullptr) return follow_sum(node);
  if (call_named(node, "aten::_softmax_backward_data", 4) != nullptr) return follow_softmax_gradient(node);
  for (const auto* scaling : {"aten::mul.Scalar", "aten::mul.Tensor", "aten::div.Scalar", "aten::div.Tensor"}) {
    if (call_named(node, scaling, 2) != nullptr) return follow_scaling(node);
  }
}

const WideValue* WideRows::first_operand(const Node& node) const {
  const auto* operand = node.args[0].value();
  const WideValue* wide = operand == nullptr ? nullptr : find(*operand);
  const bool is_row = wide != nullptr && !wide->turned &&
                      old_.type(*operand).sizes.back() == old_.type(node.results[0]).sizes.back() &&
                      old_.type(*operand).numel() == old_.type(node.results[0]).numel();
  return is_row ? wide : nullptr;
}

int64_t WideRows::row_of(ValueId made) const { return rewrite_.next().type(made).sizes.back().constant(); }

std::vector<Arg> WideRows::with_first(const Node& node, ValueId first) const {
  std::vector<Arg> args = rewrite_.map_args(node.args);
  args[0] = {first};
  return args;
}

void WideRows::call_again(const Node& node, std::vector<Arg> args, Pads pads) {
  const ValueId old = node.results[0];
  Type type = old_.type(old);
  type.sizes.back() = row_of(*args[0].value());
  type.strides = contiguous_strides(type.sizes);
  Type cut = old_.type(old);
  cut.strides = type.strides;
  const ValueId made = rewrite_.add(*node.as<Call>(), std::move(args), std::move(type), node.scope);
  show(old, made, std::move(cut), node.scope);
  note(old, {.value = made, .pads = pads});
}

void WideRows::show(ValueId old, ValueId made, Type seen, ScopeId scope) {
  const ValueId view = rewrite_.add(View{0}, {{made}}, std::move(seen), scope);
  rewrite_.set(old, rewrite_.add(Primitive{op_named("cast")}, {{view}}, old_.type(old), scope));
}

/// Where the rows are the last but one dim, they are turned.
void WideRows::follow_view(const Node& node) {
  const ValueId operand = *node.args[0].value();
  const WideValue* wide = find(operand);
  const Type& type = old_.type(node.results[0]);
  if (wide == nullptr || wide->turned || node.as<View>()->offset != 0 || type.rank() < 2) return;
  const int64_t row = old_.type(operand).sizes.back().constant();
  auto seen = with_wide_rows(type, row, row_of(wide->value));
  if (!seen || type.numel() != old_.type(operand).numel()) return;
  const size_t last = type.rank() - 1;
  const bool turned = !(seen->sizes[last - 1] == type.sizes[last - 1]);
  if (!turned && (seen->sizes[last] == type.sizes[last] || !seen->is_contiguous())) return;
  const Pads pads = wide->pads;
  note(node.results[0],
       {.value = rewrite_.add(View{0}, {{wide->value}}, *std::move(seen), node.scope), .pads = pads, .turned = turned});
}

void WideRows::follow_cast(const Node& node) {
  const WideValue* wide = first_operand(node);
  if (wide == nullptr || !is_float(old_.type(node.results[0]).dtype)) return;
  call_again(node, with_first(node, wide->value), wide->pads);
}

void WideRows::follow_scaling(const Node& node) {
  const WideValue* wide = first_operand(node);
  if (wide == nullptr || wide->pads == Pads::minus_infinity || !is_number(old_, node.args[1])) return;
  call_again(node, with_first(node, wide->value), wide->pads);
}

/// A bias or a mask that is added gets the further elements that a softmax wants.
void WideRows::follow_sum(const Node& node) {
  const WideValue* wide = first_operand(node);
  const auto* added = node.args[1].value();
  const auto* scale = std::get_if<int64_t>(&node.args[2].data);
  if (wide == nullptr || added == nullptr || scale == nullptr || *scale != 1) return;
  const Type& type = old_.type(*added);
  const Type& result = old_.type(node.results[0]);
  const bool repeats = type.is_static() && type.rank() > 0 && type.sizes.back() == result.sizes.back() &&
                       type.numel() * 2 <= result.numel() && is_float(type.dtype);
  if (!repeats) return;
  const double number = wide->pads == Pads::minus_infinity ? 0.0 : -infinity;
  std::vector<Arg> args = with_first(node, wide->value);
  args[1] = {lengthened(*added, row_of(wide->value), number, node.scope)};
  call_again(node, std::move(args), Pads::minus_infinity);
}

void WideRows::widen_softmax(const Node& node, int64_t more) {
  const WideValue* wide = first_operand(node);
  const ValueId operand = *node.args[0].value();
  const int64_t row = old_.type(operand).sizes.back().constant() + more;
  const ValueId rows = wide != nullptr && wide->pads == Pads::minus_infinity
                           ? wide->value
                           : lengthened(operand, row, -infinity, node.scope);
  call_again(node, with_first(node, rows), Pads::zeros);
}

/// (gradient - sum(gradient * softmax)) * softmax: further zeros of the softmax stay zeros. A row of which some
/// gradient is not finite is NaN, with further elements or without.
void WideRows::follow_softmax_gradient(const Node& node) {
  const auto *gradient = node.args[0].value(), *softmax = node.args[1].value();
  const WideValue* wide = softmax == nullptr ? nullptr : find(*softmax);
  if (wide == nullptr || wide->turned || gradient == nullptr) return;
  const WideValue* given = first_operand(node);
  const ValueId rows = given != nullptr && given->pads != Pads::minus_infinity
                           ? given->value
                           : lengthened(*gradient, row_of(wide->value), 0.0, node.scope);
  std::vector<Arg> args = with_first(node, rows);
  args[1] = {wide->value};
  call_again(node, std::move(args), Pads::zeros);
}

ValueId WideRows::lengthened(ValueId old, int64_t row, double number, ScopeId scope) {
  const Type& type = old_.type(old);
  return padded(rewrite_.get(old), type, {0, row - type.sizes.back().constant()}, number, scope);
}

ValueId WideRows::padded(ValueId value, const Type& type, const std::vector<int64_t>& pad, double number,
                         ScopeId scope) {
  std::vector<Dim> sizes = type.sizes;
  ArgList numbers;
  for (size_t i = 0; i < pad.size(); ++i) {
    Dim& size = sizes[sizes.size() - 1 - i / 2];
    size = size + pad[i];
    numbers.push_back({pad[i]});
  }
  Call call;
  call.op = "aten::constant_pad_nd";
  std::vector<Arg> args{{value}, {std::move(numbers)}, {number}};
  return rewrite_.add(std::move(call), std::move(args), contiguous(type.dtype, std::move(sizes), type.device), scope);
}

}  // namespace sinter::passes
