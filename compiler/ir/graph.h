#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "compiler/ir/arg.h"
#include "compiler/ir/op.h"
#include "compiler/ir/reduction.h"
#include "compiler/ir/type.h"

namespace sinter::ir {

class Graph;

/// An argument of the compiled callable.
struct Input {
  uint32_t index = 0;  ///< position among the flattened tensor arguments
};
/// A parameter, buffer or closed-over tensor, held by identity by the frontend.
struct State {
  uint32_t index = 0;  ///< slot in the frontend's state table
  std::string name;    ///< "layer1.0.conv1.weight", or "closure.0"
};
/// An ATen call. Args are those of the schema, in order, defaults included.
/// In the captured stage it may mutate arguments; afterwards it is a pure extern call.
struct Call {
  std::string op;                 ///< "aten::add.Tensor"; printed "aten.add.Tensor"
  std::vector<uint32_t> mutates;  ///< positions of args whose storage the call writes (captured stage only)
  std::string functional;         ///< the pure overload with the same leading args ("aten::relu"), when there is one
  bool random = false;            ///< draws from a generator: neither merged, removed nor reordered
  bool impure = false;            ///< a custom op not declared pure, a collective: neither merged nor removed
};
/// A pointwise op of the op table. Args are values or scalars; values broadcast as in ATen; all value operands have
/// the dtype the op's type rule asks for (casts are explicit nodes).
struct Primitive {
  OpId op;
};
/// All elements of args[0] along `dims`, joined into one. The dims stay, with size 1; dtype and other sizes are those
/// of the operand. Halves are cast before.
struct Reduce {
  ReductionId op;
  std::vector<uint32_t> dims;  ///< ascending, none twice
};
/// The operands, values of one dtype, side by side along `dim`, in order. Their other sizes are equal. A number stands
/// here as a cast to the sizes it fills.
struct Join {
  uint32_t dim = 0;
};
/// Elements of args[0] at places that other values tell: element p of the result is the operand's at p, but along
/// `dims[i]` at args[1 + i][p], an i64 or i32. Positions broadcast to the result's sizes; the operand has the result's
/// rank, and its sizes or 1 along all other dims. A position that lies outside is an error of the program.
struct Gather {
  std::vector<uint32_t> dims;  ///< ascending, none twice
};
/// Where an element lies: p[dim] at element p of the result, an i64 or i32. No args.
struct Position {
  uint32_t dim = 0;
};
/// softmax(scale * args[0] args[1]^T + args[3]) args[2] over the last two dims: queries [..., t, d], keys and values
/// [..., s, d], and, where there is one, a bias whose dims are those of the scores [..., t, s] or 1. One dtype, a half;
/// what stands between is f32, and the weights of the values are rounded to it. Static types.
struct Attention {
  double scale = 1;
  bool zeros = false;   ///< a row whose scores are all -inf gives zeros, else NaN
  bool causal = false;  ///< query i sees keys up to i only
};
/// The same storage seen through other sizes and strides: those of the result type, `offset` elements after the
/// first element of args[0]. Every ATen view is one of these once functionalized.
struct View {
  int64_t offset = 0;
};
/// A fused region: one generated kernel. `body` has one Input node per arg, in order, then primitives, reductions,
/// joins, gathers, positions and views, and one output per result. Without a reduction all outputs have the same sizes.
/// Or it has an attention and views of its operands.
struct Fused {
  std::string name;  ///< "fused_mul_erf_add_mul"
  std::shared_ptr<const Graph> body;
};

/// A write-back: when the call ends, the memory of args[0], an input or state, holds args[1] (same dtype and sizes).
/// Reads of args[0] anywhere in the graph see what it held before the call; where write-backs stand in the order means
/// nothing.
struct Write {};

using Payload =
    std::variant<Input, State, Call, Primitive, Reduce, Join, Gather, Position, Attention, View, Fused, Write>;

struct Node {
  Payload payload;
  std::vector<Arg> args;
  std::vector<ValueId> results;
  ScopeId scope;

  template <class T>
  [[nodiscard]] const T* as() const {
    return std::get_if<T>(&payload);
  }
  template <class T>
  [[nodiscard]] T* as() {
    return std::get_if<T>(&payload);
  }
};

/// True for what kernels are generated from: primitives, reductions, joins, gathers and positions.
[[nodiscard]] inline bool is_computed(const Node& node) {
  return node.as<Primitive>() != nullptr || node.as<Reduce>() != nullptr || node.as<Join>() != nullptr ||
         node.as<Gather>() != nullptr || node.as<Position>() != nullptr;
}

/// The table name of what a computed node or an attention does: "mul", "sum"; "join", "gather", "position".
[[nodiscard]] inline std::string_view computed_name(const Node& node) {
  if (const auto* reduce = node.as<Reduce>()) return row(reduce->op).name;
  if (node.as<Join>() != nullptr) return "join";
  if (node.as<Gather>() != nullptr) return "gather";
  if (node.as<Position>() != nullptr) return "position";
  if (node.as<Attention>() != nullptr) return "attention";
  return row(node.as<Primitive>()->op).name;
}

/// Captured stage: this value shares the storage of `base` (the first value seen in that storage), starting `offset`
/// elements after base's first element.
struct Alias {
  ValueId base;
  int64_t offset = 0;
};

struct Value {
  Type type;
  NodeId producer;
  std::string hint;            ///< name to print, without "%"; made unique on print
  std::optional<Alias> alias;  ///< captured stage only
  /// Bytes, a power of two up to `full_alignment`, that the address of a call's result was a multiple of when it was
  /// captured. Another run of the call may give less: who relies on it checks it.
  int64_t alignment = full_alignment;
};

/// Where a node comes from.
struct Scope {
  std::string module;  ///< "layer1.0.bn1"; empty when unknown
  std::string source;  ///< "resnet.cpp:58" or a function name; empty when unknown
  bool operator==(const Scope&) const = default;
};

/// A list of nodes in execution order. Values and nodes are addressed by ids that stay valid for the life of the
/// graph; `order` says which nodes are live and in which order they run. Not thread-safe.
class Graph {
 public:
  std::string name = "graph";
  Device device;  ///< where most values live; types print no device when it is this one
  std::vector<ValueId> outputs;

  /// Appends a node with results of the given types at the end of the order.
  NodeId add(Payload payload, std::vector<Arg> args, std::vector<Type> result_types, ScopeId scope = {});
  /// The same, for the common case of one result.
  ValueId add1(Payload payload, std::vector<Arg> args, Type type, ScopeId scope = {});

  [[nodiscard]] Node& node(NodeId id) { return nodes_[id.index]; }
  [[nodiscard]] const Node& node(NodeId id) const { return nodes_[id.index]; }
  [[nodiscard]] Value& value(ValueId id) { return values_[id.index]; }
  [[nodiscard]] const Value& value(ValueId id) const { return values_[id.index]; }
  [[nodiscard]] const Type& type(ValueId id) const { return values_[id.index].type; }
  [[nodiscard]] const Node& producer(ValueId id) const { return node(value(id).producer); }
  [[nodiscard]] size_t value_count() const { return values_.size(); }
  [[nodiscard]] size_t node_count() const { return nodes_.size(); }

  /// Live nodes in execution order. A pass rewrites a graph by building a new one, or by replacing this list.
  [[nodiscard]] const std::vector<NodeId>& order() const { return order_; }
  void set_order(std::vector<NodeId> order) { order_ = std::move(order); }

  /// Adds (or finds) a scope.
  ScopeId scope(Scope scope);
  [[nodiscard]] const Scope& scope(ScopeId id) const { return scopes_[id.index]; }
  [[nodiscard]] const std::vector<Scope>& scopes() const { return scopes_; }

 private:
  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<NodeId> order_;
  std::vector<Scope> scopes_;
  std::unordered_map<std::string, ScopeId> scope_ids_;  ///< by module, newline, source
};

/// Number of uses of every value by live nodes and graph outputs, indexed by ValueId.
[[nodiscard]] std::vector<uint32_t> use_counts(const Graph& graph);

/// Replaces every use of a value (args and outputs) by its entry in the map, following chains.
void replace_uses(Graph& graph, const std::unordered_map<ValueId, ValueId>& replacements);

/// Sizes of the broadcast of two shapes, as in ATen; nothing when they do not broadcast.
[[nodiscard]] std::optional<std::vector<Dim>> broadcast(std::span<const Dim> a, std::span<const Dim> b);

}  // namespace sinter::ir
