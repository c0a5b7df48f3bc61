#include "compiler/passes/pointwise.h"

#include <algorithm>

#include "compiler/ir/expression.h"
#include "compiler/ir/op_types.h"
#include "compiler/ir/reading.h"

namespace sinter::passes {
namespace {

using namespace ir;

bool holds_number(const Type& type) { return type.rank() == 0 && type.device.kind == Device::Kind::cpu; }

/// Adds primitives whose sizes follow from their operands. Values of the result's sizes get its strides, so that none
/// needs another layout should it have to be stored.
class GraphBuilder final : public OpBuilder {
 public:
  GraphBuilder(Graph& graph, const Type& result, ScopeId scope) : graph_(graph), result_(result), scope_(scope) {}

  [[nodiscard]] DType dtype(ValueId value) const override { return graph_.type(value).dtype; }
  [[nodiscard]] bool is_number(ValueId value) const override { return holds_number(graph_.type(value)); }
  [[nodiscard]] bool on_cuda() const override { return result_.device.kind == Device::Kind::cuda; }

  ValueId add(OpId op, std::vector<Arg> operands, DType dtype) override {
    std::vector<Dim> sizes;
    bool has_value = false;
    for (const Arg& operand : operands) {
      if (operand.value() == nullptr) continue;
      sizes = broadcast(sizes, graph_.type(*operand.value()).sizes).value();
      has_value = true;
    }
    if (!has_value) sizes = result_.sizes;
    Type type = contiguous(dtype, sizes, result_.device);
    if (sizes == result_.sizes) type.strides = result_.strides;
    return graph_.add1(Primitive{op}, std::move(operands), std::move(type), scope_);
  }

 private:
  Graph& graph_;
  const Type& result_;
  ScopeId scope_;
};

/// Goes through the motions without a graph to change.
class DryBuilder final : public OpBuilder {
 public:
  DryBuilder(const Graph& graph, const Type& result) : graph_(graph), result_(result) {}

  [[nodiscard]] bool on_cuda() const override { return result_.device.kind == Device::Kind::cuda; }
  [[nodiscard]] DType dtype(ValueId value) const override {
    const size_t known = graph_.value_count();
    return value.index < known ? graph_.type(value).dtype : added_[value.index - known];
  }
  [[nodiscard]] bool is_number(ValueId value) const override {
    return value.index < graph_.value_count() && holds_number(graph_.type(value));
  }

  ValueId add(OpId, std::vector<Arg>, DType dtype) override {
    added_.push_back(dtype);
    return {static_cast<uint32_t>(graph_.value_count() + added_.size() - 1)};
  }

 private:
  const Graph& graph_;
  const Type& result_;
  std::vector<DType> added_;
};

/// The row and dtypes of a call whose operands and result kernels can handle.
struct Match {
  OpId op;
  OpDTypes dtypes;
};

std::optional<Match> match(const Graph& graph, std::string_view aten_op, std::span<const Arg> args,
                           const Type& result) {
  const auto op = find_aten(aten_op);
  if (!op || row(*op).rule == TypeRule::cast || !is_kernel_result(graph, result)) return std::nullopt;
  bool any_on_device = false;
  for (const Arg& arg : args) {
    if (!holds_value(arg)) continue;
    if (arg.value() == nullptr || !is_kernel_operand(graph, arg)) return std::nullopt;
    if (!broadcast(result.sizes, graph.type(*arg.value()).sizes)) return std::nullopt;
    any_on_device = any_on_device || graph.type(*arg.value()).device == result.device;
  }
  if (!any_on_device) return std::nullopt;
  // Where promotion reaches the default dtype, it is the dtype that was observed.
  const DType default_dtype = is_float(result.dtype) ? result.dtype : DType::f32;
  const auto dtypes = op_dtypes(graph, *op, args, default_dtype);
  if (!dtypes || may_throw(*op, args, dtypes->operands, result.device.kind)) return std::nullopt;
  return Match{*op, *dtypes};
}

}  // namespace

bool is_kernel_operand(const Graph& graph, const Arg& arg) {
  if (arg.is_scalar()) return true;
  if (arg.value() == nullptr) return false;
  const Type& type = graph.type(*arg.value());
  if (!is_kernel_dtype(type.dtype) || !type.is_static() || !reading_of(graph, *arg.value()).plain()) return false;
  return type.device == graph.device || (type.device.kind == Device::Kind::cpu && type.rank() == 0);
}

bool is_kernel_result(const Graph& graph, const Type& type) {
  return is_kernel_dtype(type.dtype) && type.is_static() && type.is_dense() && type.device == graph.device;
}

bool can_expand(const Graph& graph, std::string_view aten_op, std::span<const Arg> args, const Type& result) {
  const auto found = match(graph, aten_op, args, result);
  if (!found) return false;
  DryBuilder builder(graph, result);
  return expand(found->op, args, found->dtypes, builder).has_value();
}

std::optional<ValueId> expand_call(Graph& graph, std::string_view aten_op, std::span<const Arg> args,
                                   const Type& result, ScopeId scope) {
  const auto found = match(graph, aten_op, args, result);
  if (!found) return std::nullopt;
  const size_t first_new = graph.value_count();
  GraphBuilder builder(graph, result, scope);
  const auto value = expand(found->op, args, found->dtypes, builder);
  if (!value) return std::nullopt;
  const bool fresh = value->value() != nullptr && value->value()->index >= first_new;
  if (fresh && graph.type(*value->value()) == result) return *value->value();
  return graph.add1(Primitive{op_named("cast")}, {*value}, result, scope);
}

}  // namespace sinter::passes
