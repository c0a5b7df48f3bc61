#include "compiler/passes/functionalize.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/memory.h"
#include "compiler/ir/reading.h"
#include "compiler/ir/reference.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/pointwise.h"
#include "compiler/passes/rewriter.h"
#include "compiler/support/errors.h"
#include "compiler/support/planted.h"

namespace sinter::passes {
namespace {

using namespace ir;

[[noreturn]] void fail(const std::string& what) { throw InternalError("functionalize", what); }

/// The type a fresh tensor gets that replaces one of type `type`: its strides where they are dense, else row-major.
Type fresh_type(const Type& type) { return type.is_dense() ? type : contiguous(type.dtype, type.sizes, type.device); }

std::vector<Arg> to_args(const std::vector<Dim>& dims) {
  std::vector<Arg> list;
  for (const Dim& dim : dims) list.push_back({dim.value()});
  return list;
}

/// ATen's GPU kernels for shifts and clamps compute `narrow.op_(wide)` on integers in the narrow dtype, its CPU kernels
/// in the promoted one; which do so is not written down anywhere, so that all of them stay calls.
bool computes_in_narrow_dtype(const Graph& graph, const Node& node, ValueId target) {
  const Type& type = graph.type(target);
  if (graph.device.kind != Device::Kind::cuda || is_float(type.dtype)) return false;
  return std::any_of(node.args.begin(), node.args.end(), [&](const Arg& arg) {
    if (arg.value() == nullptr) return false;
    const Type& operand = graph.type(*arg.value());
    return !operand.sizes.empty() && !is_float(operand.dtype) && bytes_of(operand.dtype) > bytes_of(type.dtype);
  });
}

class Functionalizer {
 public:
  explicit Functionalizer(const Graph& old)
      : old_(old), rewrite_(old), leaves_(old.value_count()), current_(old.value_count()) {
    find_foreign();
  }

  Graph run() {
    for (NodeId id : old_.order()) visit(id);
    for (ValueId output : old_.outputs) rewrite_.set(output, read_output(output));
    for (NodeId id : old_.order()) write_back(id);
    return rewrite_.finish();
  }

  int64_t changes = 0;

 private:
  /// A value made by an ATen call that looks at a storage as no view can, and the storage's value it was made from.
  struct Foreign {
    ValueId value;
    ValueId made_from;
  };

  /// Where a value lies: what a call looked at or wrote to. Inputs and state stand for themselves: where they overlap,
  /// capture lets nothing be written.
  Alias place(ValueId value) const {
    const auto& alias = old_.value(value).alias;
    return alias && old_.producer(value).as<Call>() ? *alias : Alias{value, 0};
  }
  ValueId root(ValueId value) const { return place(value).base; }
  int64_t offset(ValueId value) const { return place(value).offset; }

  /// The value whose memory a value of the new graph has: aliases kept on calls never chain.
  ValueId memory_of(ValueId value) { return ir::memory_of(rewrite_.next(), value); }

  /// True for inputs and state, whose memory is there after the call.
  bool is_leaf(ValueId value) const { return old_.producer(value).as<Input>() || old_.producer(value).as<State>(); }

  void find_foreign();
  bool is_foreign_look(const Node& node, ValueId result) const;

  void visit(NodeId id);
  void visit_call(NodeId id);
  ValueId read(ValueId value);
  ValueId look(ValueId value, ValueId current);
  ValueId read_foreign(ValueId value);
  ValueId read_output(ValueId value);
  void write_back(NodeId id);
  std::vector<Arg> read_args(const std::vector<Arg>& args);
  void emit_call(NodeId id, const std::vector<Arg>& args);
  void bind_results(NodeId old_node, NodeId new_node);

  void mutate(NodeId id);
  std::optional<ValueId> pure_value(const Node& node, ValueId target);
  std::optional<ValueId> pure_cast(const Node& node, ValueId target, const Arg& source);
  void mutate_in_place(NodeId id, const std::vector<ValueId>& targets);
  void write_unreturned(const std::map<ValueId, ValueId>& copies, ScopeId scope);
  ValueId own_copy(ValueId target, ScopeId scope);
  void write(ValueId target, ValueId value, ScopeId scope);

  const Graph& old_;
  Rewriter rewrite_;
  std::vector<ValueId> leaves_;   ///< by old input or state: the new one
  std::vector<ValueId> current_;  ///< new value of each storage, by its first value in the old graph
  std::vector<bool> foreign_;     ///< by old value: an alias that a view cannot describe
  std::unordered_map<ValueId, Foreign> made_;
  std::unordered_map<ValueId, std::pair<ValueId, ValueId>> views_;  ///< old alias -> storage's value, view of it
  std::unordered_set<ValueId> expanded_;  ///< new results of calls that stand for primitives: of the written type
};

bool Functionalizer::is_foreign_look(const Node& node, ValueId result) const {
  const auto& alias = old_.value(result).alias;
  if (!alias) return false;
  const Type& type = old_.type(result);
  const Type& base = old_.type(alias->base);
  if (type.dtype != base.dtype || type.device != base.device) return true;
  const bool outside = alias->offset < 0 || alias->offset + type.span() > base.span();
  if (outside && type.span() > 0) return true;
  if (!reading_of(old_, result).plain()) return true;
  bool foreign = false;
  for (const Arg& arg : node.args) {
    for_each_value(arg, [&](ValueId v) { foreign = foreign || (foreign_[v.index] && root(v) == alias->base); });
  }
  return foreign;
}

void Functionalizer::find_foreign() {
  foreign_.assign(old_.value_count(), false);
  for (NodeId id : old_.order()) {
    const Node& node = old_.node(id);
    if (!node.as<Call>()) continue;
    for (ValueId result : node.results) foreign_[result.index] = is_foreign_look(node, result);
  }
}

void Functionalizer::visit(NodeId id) {
  const Node& node = old_.node(id);
  if (node.as<Call>()) return visit_call(id);
  const NodeId copied = rewrite_.copy(id);
  for (size_t i = 0; i < node.results.size(); ++i) {
    const ValueId result = rewrite_.next().node(copied).results[i];
    rewrite_.next().value(result).alias.reset();
    current_[node.results[i].index] = result;
    leaves_[node.results[i].index] = result;
  }
}

void Functionalizer::visit_call(NodeId id) {
  const Node& node = old_.node(id);
  const Call& call = *node.as<Call>();
  if (!call.mutates.empty()) return mutate(id);
  const bool is_view = !node.results.empty() && !call.random && !call.impure &&
                       std::all_of(node.results.begin(), node.results.end(),
                                   [&](ValueId result) { return old_.value(result).alias && !foreign_[result.index]; });
  if (is_view) {
    ++changes;  // reads make the view
    return;
  }
  emit_call(id, read_args(node.args));
}

void Functionalizer::emit_call(NodeId id, const std::vector<Arg>& args) {
  const Node& node = old_.node(id);
  std::vector<Type> types;
  for (ValueId result : node.results) types.push_back(old_.type(result));
  Call call = *node.as<Call>();
  call.mutates.clear();
  call.functional.clear();
  bind_results(id, rewrite_.next().add(std::move(call), args, std::move(types), rewrite_.map_scope(node.scope)));
}

void Functionalizer::bind_results(NodeId old_node, NodeId new_node) {
  const std::vector<ValueId>& olds = old_.node(old_node).results;
  for (size_t i = 0; i < olds.size(); ++i) {
    const ValueId made = rewrite_.next().node(new_node).results[i];
    const auto& alias = old_.value(olds[i]).alias;
    rewrite_.next().value(made).hint = old_.value(olds[i]).hint;
    rewrite_.next().value(made).alignment = old_.value(olds[i]).alignment;
    if (!alias) {
      current_[olds[i].index] = made;
      continue;
    }
    if (!foreign_[olds[i].index]) continue;  // reads see the storage
    const ValueId current = current_[alias->base.index];
    rewrite_.next().value(made).alias = Alias{memory_of(current), 0};
    made_[olds[i]] = {made, current};
  }
}

ValueId Functionalizer::read(ValueId value) {
  return foreign_[value.index] ? read_foreign(value) : look(value, current_[root(value).index]);
}

/// A value of the old graph as it is seen in `current`, a value of its storage.
ValueId Functionalizer::look(ValueId value, ValueId current) {
  const Type& type = old_.type(value);
  if (!current.valid()) fail("a value is read before it is defined");
  if (rewrite_.next().type(current) == type && offset(value) == 0) return current;
  auto& [made_from, view] = views_[value];
  if (made_from != current) {
    const ScopeId scope = old_.producer(value).scope;
    made_from = current;
    view = rewrite_.add(View{type.span() == 0 ? 0 : offset(value)}, {{current}}, type, scope);
    rewrite_.next().value(view).hint = old_.value(value).hint;
  }
  return view;
}

ValueId Functionalizer::read_foreign(ValueId value) {
  const auto made = made_.find(value);
  if (made == made_.end()) fail("an alias is read before it is made");
  if (made->second.made_from == current_[root(value).index]) return made->second.value;
  const NodeId producer = old_.value(value).producer;  // the storage was written since: look at it again
  emit_call(producer, read_args(old_.node(producer).args));
  return made_.at(value).value;
}

/// What the caller gets: an output that lies in an input or in state is that memory, whatever it holds by then.
ValueId Functionalizer::read_output(ValueId value) {
  const ValueId base = root(value);
  if (!is_leaf(base) || foreign_[value.index]) return read(value);
  return look(value, leaves_[base.index]);
}

/// Where the memory of an input or of state is another value by now, it gets that value when the call ends.
void Functionalizer::write_back(NodeId id) {
  const Node& node = old_.node(id);
  if (!node.as<Input>() && !node.as<State>()) return;
  const ValueId leaf = leaves_[node.results[0].index];
  ValueId current = current_[node.results[0].index];
  if (current == leaf || planted(Bug::write_back_lost)) return;
  const Type type = rewrite_.next().type(leaf);  // what was written through a view that covers it has that view's type
  if (rewrite_.next().type(current) != type) {
    current = rewrite_.add(View{0}, {{current}}, type, old_.producer(node.results[0]).scope);
  }
  rewrite_.next().add(Write{}, {{leaf}, {current}}, {});
}

std::vector<Arg> Functionalizer::read_args(const std::vector<Arg>& args) {
  std::vector<Arg> mapped = args;
  for (Arg& arg : mapped) for_each_value(arg, [&](ValueId& value) { value = read(value); });
  return mapped;
}

void Functionalizer::mutate(NodeId id) {
  ++changes;
  const Node& node = old_.node(id);
  std::vector<ValueId> targets;
  for (uint32_t position : node.as<Call>()->mutates) {
    for_each_value(node.args.at(position), [&](ValueId value) { targets.push_back(value); });
  }
  for (ValueId target : targets) {
    if (foreign_[target.index]) fail("a write through a view of another dtype");
  }
  if (targets.size() == 1) {
    if (const auto value = pure_value(node, targets[0])) return write(targets[0], *value, node.scope);
  }
  mutate_in_place(id, targets);
}

/// A product in place hands ATen the number as its first operand, where kernels for the CPU round it to the half.
Arg rounded_factor(const Arg& factor, const Type& product) {
  if (!is_half(product.dtype) || product.device.kind != Device::Kind::cpu) return factor;
  if (const auto* number = std::get_if<double>(&factor.data)) return {ref::round_to(*number, product.dtype)};
  if (const auto* number = std::get_if<int64_t>(&factor.data)) {
    return {ref::round_to(static_cast<double>(*number), product.dtype)};
  }
  return factor;
}

/// The new value of the written tensor as a pure node, where there is one that surely has the wanted type.
std::optional<ValueId> Functionalizer::pure_value(const Node& node, ValueId target) {
  const Call& call = *node.as<Call>();
  const std::string_view base = base_name(call.op);
  if (call.random || call.impure) return std::nullopt;
  if (base == "aten::copy_" || base == "aten::fill_") return pure_cast(node, target, node.args.at(1));
  if (base == "aten::zero_") return pure_cast(node, target, Arg{int64_t{0}});

  const std::string pure = pure_form(call);
  if (pure.empty() || computes_in_narrow_dtype(old_, node, target)) return std::nullopt;
  std::vector<Arg> args;
  const bool in_place = call.mutates[0] == 0;
  for (size_t i = 0; i < node.args.size(); ++i) {
    if (in_place || call.mutates[0] != i) args.push_back(node.args[i]);
  }
  const Type type = fresh_type(old_.type(target));
  if (base == "aten::mul_") args.at(1) = rounded_factor(args.at(1), type);
  if (!can_expand(old_, pure, args, type)) return std::nullopt;
  const ValueId made = rewrite_.add(Call{pure, {}, {}, false, false}, read_args(args), type, node.scope);
  expanded_.insert(made);
  return made;
}

std::optional<ValueId> Functionalizer::pure_cast(const Node& node, ValueId target, const Arg& source) {
  const Type type = fresh_type(old_.type(target));
  if (!is_kernel_operand(old_, source) || !is_kernel_result(old_, type)) return std::nullopt;
  return rewrite_.add(Primitive{op_named("cast")}, read_args({source}), type, node.scope);
}

/// Runs the op as it is, on tensors that nothing else reads.
void Functionalizer::mutate_in_place(NodeId id, const std::vector<ValueId>& targets) {
  const Node& node = old_.node(id);
  std::map<ValueId, ValueId> copies;
  for (ValueId target : targets) {
    if (!copies.contains(target)) copies[target] = own_copy(target, node.scope);
  }
  std::vector<Arg> args = node.args;
  const auto& mutates = node.as<Call>()->mutates;
  for (uint32_t i = 0; i < args.size(); ++i) {
    const bool written = std::find(mutates.begin(), mutates.end(), i) != mutates.end();
    for_each_value(args[i], [&](ValueId& value) { value = written ? copies.at(value) : read(value); });
  }
  std::vector<Type> types;
  std::vector<ValueId> result_target(node.results.size());
  for (size_t i = 0; i < node.results.size(); ++i) {
    types.push_back(old_.type(node.results[i]));
    for (ValueId target : targets) {
      if (root(node.results[i]) != root(target) || offset(node.results[i]) != offset(target)) continue;
      result_target[i] = target;
      types[i] = rewrite_.next().type(copies.at(target));
    }
  }
  Call call = *node.as<Call>();
  call.mutates.clear();
  call.functional.clear();
  call.impure = call.impure || std::any_of(copies.begin(), copies.end(), [&](const auto& copy) {
                  return std::find(result_target.begin(), result_target.end(), copy.first) == result_target.end();
                });
  const NodeId made = rewrite_.next().add(std::move(call), std::move(args), types, rewrite_.map_scope(node.scope));
  bind_results(id, made);
  for (size_t i = 0; i < node.results.size(); ++i) {
    if (!result_target[i].valid()) continue;
    const auto copy = copies.find(result_target[i]);
    if (copy == copies.end()) continue;
    const ValueId result = rewrite_.next().node(made).results[i];
    rewrite_.next().value(result).alias = Alias{memory_of(copy->second), 0};
    write(result_target[i], result, node.scope);
    copies.erase(copy);
  }
  write_unreturned(copies, node.scope);
}

/// What a call wrote without returning it is looked at after the call. Both are impure, so that they keep their order.
void Functionalizer::write_unreturned(const std::map<ValueId, ValueId>& copies, ScopeId scope) {
  for (const auto& [target, copy] : copies) {
    const Type type = rewrite_.next().type(copy);
    const ValueId look = rewrite_.add(Call{"aten::alias", {}, {}, false, true}, {{copy}}, type, scope);
    rewrite_.next().value(look).alias = Alias{memory_of(copy), 0};
    write(target, look, scope);
  }
}

/// A tensor with the target's contents that nothing else reads. The node that makes it is marked impure: it is neither
/// merged with its like nor turned into a kernel, so the write that follows is seen by nobody else. A pure form is not
/// marked: as a call it would give the dtype and strides of its operands, not those of the tensor it was written to.
ValueId Functionalizer::own_copy(ValueId target, ScopeId scope) {
  Graph& next = rewrite_.next();
  const ValueId source = read(target);
  Node& producer = next.node(next.value(source).producer);
  if (Call* call = producer.as<Call>(); call != nullptr && source == current_[root(target).index]) {
    const bool fresh = producer.results.size() == 1 && !next.value(source).alias && !expanded_.contains(source) &&
                       use_counts(next)[source.index] == 0;
    if (fresh) {
      call->impure = true;
      return source;
    }
  }
  const Type type = fresh_type(next.type(source));
  const Arg format = type == next.type(source) ? Arg{} : Arg{Enum{"memory_format", 0}};
  return rewrite_.add(Call{"aten::clone", {}, {}, false, true}, {{source}, format}, type, scope);
}

/// From here on, the elements that `target` sees are those of `value` (same sizes and dtype).
void Functionalizer::write(ValueId target, ValueId value, ScopeId scope) {
  ValueId& current = current_[root(target).index];
  const Type& type = old_.type(target);
  const Type& whole = old_.type(root(target));
  const bool covers = offset(target) == 0 && type.is_dense() && whole.is_dense() && type.numel() == whole.numel();
  const bool whole_with_gaps = type == whole && offset(target) == 0 && !whole.is_dense();
  if (whole_with_gaps && is_kernel_dtype(type.dtype)) {  // an input: a kernel writes it in its own layout
    current = rewrite_.add(Primitive{op_named("cast")}, {{value}}, whole, scope);
    return;
  }
  if (covers && rewrite_.next().type(value).strides == type.strides) {
    current = value;
    return;
  }
  const Type current_type = rewrite_.next().type(current);
  current = rewrite_.add(Call{std::string(scatter), {}, {}, false, false},
                         {{current}, {value}, {to_args(type.sizes)}, {to_args(type.strides)}, {offset(target)}},
                         current_type, scope);
}

}  // namespace

PassResult functionalize(Graph& graph, const PassContext&) {
  Functionalizer functionalizer(graph);
  Graph next = functionalizer.run();
  graph = std::move(next);
  return {functionalizer.changes};
}

}  // namespace sinter::passes
