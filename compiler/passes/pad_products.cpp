#include "compiler/passes/pad_products.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/op.h"
#include "compiler/ir/view_source.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/batched_product.h"
#include "compiler/passes/decompose_rules.h"
#include "compiler/passes/product.h"
#include "compiler/passes/rewriter.h"
#include "compiler/passes/wide_rows.h"

namespace sinter::passes {
namespace {

using namespace ir;

constexpr int64_t fewest_elements = int64_t{1} << 20;  ///< of scores: smaller products take less than two launches

int64_t padding_of(const Dim& size) { return missing_halves(size.constant()); }

Type row_major(const Type& like, std::vector<Dim> sizes) {
  return contiguous(like.dtype, std::move(sizes), like.device);
}

class Padder {
 public:
  explicit Padder(const Graph& old)
      : old_(old),
        rewrite_(old),
        wide_(old, rewrite_),
        users_(old.value_count()),
        turned_(old.value_count(), true),
        leaves_(old.value_count(), false) {
    for (const NodeId id : old.order()) {
      const Node& node = old.node(id);
      if (node.as<View>() != nullptr) continue;
      for (const Arg& arg : node.args) {
        for_each_value(arg, [&](ValueId value) {
          const uint32_t base = view_source(old, value).base.index;
          users_[base].push_back(id);
          const Type& type = old.type(value);
          if (type.rank() < 2 || type.strides.back() == Dim(1)) turned_[base] = false;
        });
      }
    }
    for (const ValueId output : old.outputs) leaves_[view_source(old, output).base.index] = true;
  }

  Graph run() {
    for (const NodeId id : old_.order()) {
      const Node& node = old_.node(id);
      if (pad(node)) continue;
      rewrite_.copy(id);
      if (!widen(node)) wide_.follow(node);
    }
    return rewrite_.finish();
  }

  [[nodiscard]] int64_t changes() const { return changes_; }

 private:
  bool pad(const Node& node) {
    const auto batched = batched_product(old_, node);
    if (batched && is_half(old_.type(batched->right).dtype)) {
      return take_wide_left(*batched, node) || take_wide_right(*batched, node) || pad_columns(*batched, node) ||
             turn_weight(*batched, node);
    }
    const auto product = product_of(node);
    return product && pad_weight(*product, node);
  }

  /// The softmax along rows of which a batched product reads halves: over more elements of each row.
  bool widen(const Node& node) {
    if (!is_softmax_of_rows(old_, node) || !old_.type(node.results[0]).is_static()) return false;
    const ValueId value = node.results[0];
    const int64_t more = padding_of(old_.type(value).sizes.back());
    if (more == 0 || old_.type(value).numel() < fewest_elements || !feeds_product(value)) return false;
    wide_.widen_softmax(node, more);
    ++changes_;
    return true;
  }

  /// True where a batched product of halves reads the value, or what it is cast to, and it is no output itself.
  [[nodiscard]] bool feeds_product(ValueId value) const {
    if (leaves_[value.index]) return false;
    return std::ranges::any_of(users_[value.index], [&](NodeId id) {
      const Node& user = old_.node(id);
      if (call_named(user, "aten::_to_copy", 7) != nullptr) return feeds_product(user.results[0]);
      const auto product = batched_product(old_, user);
      return product && is_half(old_.type(product->right).dtype);
    });
  }

  /// left x right, where the left operand has longer rows, or further ones, which the result gets then.
  bool take_wide_left(const BatchedProduct& product, const Node& node) {
    const WideValue* left = wide_.find(product.left);
    if (left == nullptr || left->pads != Pads::zeros) return false;
    const Type wide = rewrite_.next().type(left->value);
    if (left->turned) {
      cut_rows(product.result, wide.sizes[1], {{left->value}, {rewrite_.get(product.right)}}, node);
      return true;
    }
    const Type& right = old_.type(product.right);
    const int64_t more = wide.sizes[2].constant() - right.sizes[1].constant();
    const int64_t columns = read_by_kernels(product.result) ? padding_of(right.sizes[2]) : 0;
    const ValueId rows = with_zeros(product.right, more, columns, right.strides[1] == Dim(1) && columns != 0, node);
    cut_off(product.result, columns, {{left->value}, {rows}}, node);
    return true;
  }

  /// left x right, where the right operand has longer rows. A result that is read turned alone is computed so.
  bool take_wide_right(const BatchedProduct& product, const Node& node) {
    const WideValue* right = wide_.find(product.right);
    if (right == nullptr || right->pads != Pads::zeros || right->turned || !read_by_kernels(product.result)) {
      return false;
    }
    const ValueId left = rewrite_.get(product.left);
    const Type wide = rewrite_.next().type(right->value);
    const int64_t more = wide.sizes[2].constant() - old_.type(product.right).sizes[2].constant();
    if (!turned_[product.result.index]) {
      cut_off(product.result, more, {{left}, {right->value}}, node);
      return true;
    }
    const Type& narrow = old_.type(product.result);
    const ValueId right_turned = rewrite_.add(View{0}, {{right->value}}, transposed(wide), node.scope);
    const ValueId left_turned = rewrite_.add(View{0}, {{left}}, transposed(old_.type(product.left)), node.scope);
    const Type made_type = row_major(narrow, {narrow.sizes[0], wide.sizes[2], narrow.sizes[1]});
    Type seen = transposed(made_type);
    seen.sizes[2] = narrow.sizes[2];
    const ValueId made = rewrite_.add(*node.as<Call>(), {{right_turned}, {left_turned}}, made_type, node.scope);
    replace(product.result, made, std::move(seen), node);
    return true;
  }

  /// True when only kernels read the value, where they may read it in another layout.
  [[nodiscard]] bool read_by_kernels(ValueId value) const {
    const auto& users = users_[value.index];
    if (users.empty() || leaves_[value.index]) return false;
    return std::ranges::all_of(users, [&](NodeId id) { return becomes_kernels(old_.node(id)); });
  }

  /// True where a kernel computes the value, and may lay it out in wider rows.
  [[nodiscard]] bool made_by_kernels(ValueId value) const {
    return becomes_kernels(old_.producer(view_source(old_, value).base));
  }

  static bool becomes_kernels(const Node& node) {
    if (ir::is_computed(node)) return true;
    const auto* call = node.as<Call>();
    return call != nullptr && (structural_rule(call->op) != nullptr || find_aten(call->op));
  }

  /// left x right, with more columns than are wanted.
  bool pad_columns(const BatchedProduct& product, const Node& node) {
    const Type& result = old_.type(product.result);
    const int64_t more = padding_of(result.sizes[2]);
    if (more == 0 || result.numel() < fewest_elements || !read_by_kernels(product.result)) return false;
    const Type& right = old_.type(product.right);
    const bool lies_turned = right.strides[1] == Dim(1) || copies_columns(product.right);
    const bool turns = lies_turned && padding_of(right.sizes[1]) == 0;
    cut_off(product.result, more, {{rewrite_.get(product.left)}, {with_zeros(product.right, 0, more, turns, node)}},
            node);
    return true;
  }

  /// left x right, where every batch has the same right operand, of rows that are no multiple of what tensor cores load
  /// while its columns are, and all else lies as they want it: that operand is laid out the other way round.
  bool turn_weight(const BatchedProduct& product, const Node& node) {
    const Type& left = old_.type(product.left);
    const Type& right = old_.type(product.right);
    const auto aligned = [](const Dim& number) { return padding_of(number) == 0; };
    const bool shared = right.strides[0] == Dim(0) && right.strides[1] == Dim(1) && right.strides[2] == right.sizes[1];
    const bool gains = shared && !aligned(right.sizes[1]) && aligned(right.sizes[2]) && left.strides[1] == Dim(1) &&
                       aligned(left.strides[2]) && aligned(left.strides[0]);
    if (!gains || left.numel() < fewest_elements) return false;
    Type one = right;
    one.sizes.erase(one.sizes.begin());
    one.strides.erase(one.strides.begin());
    const ValueId seen = rewrite_.add(View{0}, {{rewrite_.get(product.right)}}, one, node.scope);
    const Type turned = row_major(one, one.sizes);
    const ValueId copy = rewrite_.add(Primitive{op_named("cast")}, {{seen}}, turned, node.scope);
    Type everywhere = right;
    everywhere.strides = {0, turned.strides[0], turned.strides[1]};
    const ValueId wide = rewrite_.add(View{0}, {{copy}}, everywhere, node.scope);
    cut_off(product.result, 0, {{rewrite_.get(product.left)}, {wide}}, node);
    return true;
  }

  /// left x right with a bias or without, where rows or columns of a weight are no multiple of what tensor cores load:
  /// further ones are zeros.
  bool pad_weight(const Product& product, const Node& node) {
    const ValueId value = node.results[0];
    const Type& result = old_.type(value);
    const Type& right = old_.type(product.right);
    if (!is_static_half(result) || !is_static_half(right) || result.rank() != 2 || !result.is_contiguous())
      return false;
    const int64_t inner = padding_of(right.sizes[0]);
    const int64_t columns =
        read_by_kernels(value) && has_place_for_columns(product, result) ? padding_of(right.sizes[1]) : 0;
    if (inner + columns == 0 || (inner != 0 && !made_by_kernels(product.left))) return false;
    if (std::max(result.numel(), old_.type(product.left).numel()) < fewest_elements) return false;
    std::vector<Arg> args = rewrite_.map_args(node.args);
    const size_t left = product.bias ? 1 : 0;
    if (inner != 0) args[left] = {padded(product.left, {0, inner}, 0.0, node)};
    if (product.bias && columns != 0) args[0] = {padded(*product.bias, {0, columns}, 0.0, node)};
    args[left + 1] = {with_zeros(product.right, inner, columns, right.strides[0] == Dim(1), node)};
    cut_off(value, columns, std::move(args), node);
    return true;
  }

  static bool is_static_half(const Type& type) { return type.is_static() && is_half(type.dtype); }

  /// True where a bias, if there is one, has an element for each column.
  [[nodiscard]] bool has_place_for_columns(const Product& product, const Type& result) const {
    if (!product.bias) return true;
    const Type& bias = old_.type(*product.bias);
    return bias.rank() == 1 && bias.sizes[0] == result.sizes[1];
  }

  /// Calls the product with these arguments, which give `more` columns than `result` has, and leaves those out.
  void cut_off(ValueId result, int64_t more, std::vector<Arg> args, const Node& node) {
    const Type& narrow = old_.type(result);
    Type wide = narrow;
    wide.sizes.back() = wide.sizes.back() + more;
    wide.strides = contiguous_strides(wide.sizes);
    Type cut = narrow;
    cut.strides = wide.strides;
    const ValueId made = rewrite_.add(*node.as<Call>(), std::move(args), std::move(wide), node.scope);
    if (more != 0) {
      wide_.note(result, {.value = made, .pads = Pads::products});
      return replace(result, made, std::move(cut), node);
    }
    rewrite_.set(result, made);
    ++changes_;
  }

  /// Calls the batched product with these arguments, which give `rows` rows, and leaves out those that `result` has
  /// not.
  void cut_rows(ValueId result, Dim rows, std::vector<Arg> args, const Node& node) {
    const Type& narrow = old_.type(result);
    const Type wide = row_major(narrow, {narrow.sizes[0], std::move(rows), narrow.sizes[2]});
    Type cut = narrow;
    cut.strides = wide.strides;
    replace(result, rewrite_.add(*node.as<Call>(), std::move(args), wide, node.scope), std::move(cut), node);
  }

  /// Has a copy of what is seen of `made` in place of `result`.
  void replace(ValueId result, ValueId made, Type seen, const Node& node) {
    wide_.show(result, made, std::move(seen), node.scope);
    ++changes_;
  }

  /// The right operand with further rows (`inner`) and columns of zeros. Where its columns, or those of what it is a
  /// copy of, lie in memory one after the other, it turns into that kind: the library takes both, and the kernel that
  /// copies need not turn.
  ValueId with_zeros(ValueId right, int64_t inner, int64_t columns, bool turns, const Node& node) {
    if (!turns && inner == 0) return padded(right, {0, columns}, 0.0, node);
    if (!turns) return padded(right, {0, columns, 0, inner}, 0.0, node);
    const Type filters = transposed(old_.type(right));
    const ValueId seen = rewrite_.add(View{0}, {{rewrite_.get(right)}}, filters, node.scope);
    const ValueId wide = wide_.padded(seen, filters, {0, inner, 0, columns}, 0.0, node.scope);
    return rewrite_.add(View{0}, {{wide}}, transposed(rewrite_.next().type(wide)), node.scope);
  }

  /// With its last two dims exchanged.
  static Type transposed(Type type) {
    const size_t last = type.rank() - 1;
    std::swap(type.sizes[last - 1], type.sizes[last]);
    std::swap(type.strides[last - 1], type.strides[last]);
    return type;
  }

  /// True for a row-major copy of a tensor whose second last dim has neighbours in memory.
  [[nodiscard]] bool copies_columns(ValueId value) const {
    while (old_.producer(value).as<View>() != nullptr) {
      const ValueId base = *old_.producer(value).args[0].value();
      const Type& from = old_.type(base);
      const bool same_rows = from.rank() > 1 && from.is_contiguous() && old_.type(value).is_contiguous() &&
                             from.sizes.back() == old_.type(value).sizes.back();
      if (!same_rows) return false;
      value = base;
    }
    const Node& copy = old_.producer(value);
    if (call_named(copy, "aten::clone", 2) == nullptr || copy.args[0].value() == nullptr) return false;
    const Type& from = old_.type(*copy.args[0].value());
    return from.rank() > 1 && from.strides[from.rank() - 2] == Dim(1);
  }

  /// constant_pad_nd of an old value, row-major. `pad` holds elements before and after, the last dim first.
  ValueId padded(ValueId value, const std::vector<int64_t>& pad, double number, const Node& node) {
    return wide_.padded(rewrite_.get(value), old_.type(value), pad, number, node.scope);
  }

  const Graph& old_;
  Rewriter rewrite_;
  WideRows wide_;
  std::vector<std::vector<NodeId>> users_;  ///< by value that is no view: nodes that read it, views looked through
  std::vector<bool> turned_;                ///< by value that is no view: all read it with its last two dims exchanged
  std::vector<bool> leaves_;                ///< by value that is no view: it, or a view of it, is an output
  int64_t changes_ = 0;
};

}  // namespace

PassResult pad_products(Graph& graph, const PassContext& context) {
  if (!context.fast_on_cuda()) return {};
  Padder padder(graph);
  Graph next = padder.run();
  if (padder.changes() > 0) graph = std::move(next);
  return {padder.changes()};
}

}  // namespace sinter::passes
