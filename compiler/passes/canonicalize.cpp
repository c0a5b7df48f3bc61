#include "compiler/passes/canonicalize.h"

#include <unordered_map>

#include "compiler/ir/placed_view.h"
#include "compiler/ir/view_source.h"
#include "compiler/passes/bodies.h"
#include "compiler/passes/exact.h"
#include "compiler/passes/ownership.h"

namespace sinter::passes {
namespace {

using namespace ir;

class Canonicalizer {
 public:
  explicit Canonicalizer(Graph& graph) : graph_(graph), ownership_(graph), uses_(use_counts(graph)) {}

  int64_t run() {
    for (NodeId id : graph_.order()) {
      Node& node = graph_.node(id);
      for (Arg& arg : node.args) for_each_value(arg, [&](ValueId& value) { value = newest(value); });
      if (node.as<View>()) visit_view(node);
      if (node.as<Primitive>()) visit_primitive(node);
    }
    replace_uses(graph_, replacements_);
    return changes_;
  }

 private:
  [[nodiscard]] ValueId newest(ValueId value) const {
    const auto found = replacements_.find(value);
    return found == replacements_.end() ? value : found->second;
  }

  [[nodiscard]] std::string_view op_name(const Node& node) const {
    const auto* primitive = node.as<Primitive>();
    return primitive == nullptr ? std::string_view() : row(primitive->op).name;
  }

  bool replace(const Node& node, ValueId by) {
    const ValueId value = node.results[0];
    if (graph_.type(value) != graph_.type(by) || !ownership_.can_replace(value, by)) return false;
    ownership_.replaced(value, by);
    uses_[by.index] += uses_[value.index];
    replacements_[value] = by;
    ++changes_;
    return true;
  }

  void visit_view(Node& node) {
    View& view = *node.as<View>();
    const ViewSource source = view_source(graph_, *node.args[0].value());
    if (source.is_view) {
      node.args[0].data = source.base;
      view.offset += source.offset;
      ++changes_;
    }
    if (view.offset == 0) replace(node, *node.args[0].value());
  }

  void visit_primitive(Node& node) {
    fold_operands(node);
    if (fold_numbers(node)) return;
    order_operands(node);
    if (op_name(node) == "cast") return visit_cast(node);
    if (const ValueId* same = unchanged_operand(graph_, node)) replace(node, *same);
  }

  /// A number instead of a value that is nothing but that number, where the result's sizes do not depend on it or the
  /// node becomes a number too.
  void fold_operands(Node& node) {
    for (size_t i = 0; i < node.args.size(); ++i) {
      if (node.args[i].value() == nullptr) continue;
      const Node& producer = graph_.producer(*node.args[i].value());
      if (op_name(producer) != "cast" || !producer.args[0].is_scalar()) continue;
      const auto number = convert_exactly(producer.args[0], graph_.type(producer.results[0]).dtype);
      if (!number) continue;
      const Arg before = node.args[i];
      node.args[i] = *number;
      if (keeps_sizes(node)) {
        ++changes_;
      } else {
        node.args[i] = before;
      }
    }
  }

  [[nodiscard]] bool keeps_sizes(const Node& node) const {
    std::vector<Dim> sizes;
    bool has_value = false;
    for (const Arg& arg : node.args) {
      if (arg.value() == nullptr) continue;
      sizes = broadcast(sizes, graph_.type(*arg.value()).sizes).value();
      has_value = true;
    }
    const ir::Type& result = graph_.type(node.results[0]);
    if (op_name(node) == "cast" || sizes == result.sizes) return true;
    return !has_value && evaluate_numbers(node, result.dtype).has_value();
  }

  /// Numbers alone: the result is a number too.
  bool fold_numbers(Node& node) {
    for (const Arg& arg : node.args) {
      if (!arg.is_scalar()) return false;
    }
    if (op_name(node) == "cast") return true;
    const auto number = evaluate_numbers(node, graph_.type(node.results[0]).dtype);
    if (!number) return false;
    node.payload = Primitive{op_named("cast")};
    node.args = {*number};
    ++changes_;
    return true;
  }

  void order_operands(Node& node) {
    if (!is_commutative(op_name(node)) || !node.args[0].is_scalar() || node.args[1].is_scalar()) return;
    std::swap(node.args[0], node.args[1]);
    ++changes_;
  }

  void visit_cast(Node& node) {
    const ValueId source = *node.args[0].value();
    if (const auto seen = undone_copy(node)) look_through_copy(node, *seen);
    if (replace(node, source)) return;
    const Node& inner = graph_.producer(source);
    if (op_name(inner) != "cast" || inner.args[0].value() == nullptr) return;
    const ValueId origin = *inner.args[0].value();
    const DType from = graph_.type(origin).dtype;
    const DType through = graph_.type(source).dtype;
    if (graph_.type(origin).sizes != graph_.type(source).sizes || !holds_exactly(through, from)) return;
    node.args[0].data = origin;
    ++changes_;
    replace(node, origin);
  }

  /// Where the elements that `node` copies lie in front of another copy, of which its source is a view, if they lie
  /// there as `node` wants them.
  [[nodiscard]] std::optional<PlacedView> undone_copy(const Node& node) const {
    const ValueId source = *node.args[0].value();
    const Type& looked_at = graph_.type(source);
    const Type& wanted = graph_.type(node.results[0]);
    const Node& view = graph_.producer(source);
    if (view.as<View>() == nullptr || uses_[source.index] != 1) return std::nullopt;
    const bool comparable = looked_at.dtype == wanted.dtype && looked_at.device == wanted.device;
    if (!comparable || looked_at.sizes != wanted.sizes) return std::nullopt;
    const ValueId copied = *view.args[0].value();
    const Node& copy = graph_.producer(copied);
    if (op_name(copy) != "cast" || copy.args[0].value() == nullptr) return std::nullopt;
    const Type& from = graph_.type(*copy.args[0].value());
    const Type& to = graph_.type(copied);
    if (from.dtype != to.dtype || from.sizes != to.sizes || !from.is_static()) return std::nullopt;
    if (!to.is_dense() || to.numel() == 0) return std::nullopt;
    auto seen = seen_in(to, from, {looked_at, view.as<View>()->offset});
    if (!seen || !same_layout(seen->type, wanted)) return std::nullopt;
    seen->type = wanted;
    return seen;
  }

  /// Makes the source of a node, a view of a copy that nothing else reads, a view of what was copied.
  void look_through_copy(const Node& node, const PlacedView& seen) {
    const ValueId source = *node.args[0].value();
    Node& view = graph_.node(graph_.value(source).producer);
    const ViewSource origin = view_source(graph_, *graph_.producer(*view.args[0].value()).args[0].value());
    view.args[0].data = origin.base;
    view.as<View>()->offset = origin.offset + seen.offset;
    graph_.value(source).type = seen.type;
    ++changes_;
  }

  Graph& graph_;
  Ownership ownership_;
  std::vector<uint32_t> uses_;
  std::unordered_map<ValueId, ValueId> replacements_;
  int64_t changes_ = 0;
};

}  // namespace

PassResult canonicalize(Graph& graph, const PassContext&) {
  PassResult result;
  result.changes += rewrite_bodies(graph, [](Graph& body) { return Canonicalizer(body).run(); });
  result.changes += Canonicalizer(graph).run();
  return result;
}

}  // namespace sinter::passes
