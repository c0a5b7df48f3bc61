#include "frontend/view_check.h"

#include <ATen/ops/empty_strided.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "frontend/convert.h"
#include "frontend/extern_call.h"

namespace sinter::frontend {
namespace {

at::Tensor without_data(const ir::Type& type) {
  const auto dtype = scalar_type_of(type.dtype);
  if (!dtype) return {};
  return at::empty_strided(type.static_sizes(), type.static_strides(), at::TensorOptions(*dtype).device(at::kMeta));
}

int64_t offset_in_base(const ir::Graph& graph, ir::ValueId value) {
  const auto& alias = graph.value(value).alias;
  return alias ? alias->offset : 0;
}

/// as_strided names the sizes and strides of its result, and may leave the elements of its argument.
bool is_checked_view(const ir::Graph& graph, const ir::Node& node) {
  const auto* call = node.as<ir::Call>();
  if (call == nullptr || node.results.empty() || !call->mutates.empty() || call->op == "aten::as_strided") return false;
  if (node.args.empty() || node.args[0].value() == nullptr) return false;
  return std::ranges::all_of(node.results, [&](ir::ValueId result) { return graph.value(result).alias.has_value(); });
}

/// What is no view of `argument` has sizes that a replay looks at itself.
bool is_as_said(const ir::Graph& graph, ir::ValueId source, ir::ValueId result, const at::Tensor& argument,
                const at::Tensor& made) {
  const ir::Type& type = graph.type(result);
  if (!made.is_alias_of(argument)) return true;
  if (made.sizes() != c10::IntArrayRef(type.static_sizes())) return false;
  if (made.strides() != c10::IntArrayRef(type.static_strides())) return false;
  if (type.dtype != graph.type(source).dtype) return true;  // offsets count elements of other sizes
  return made.storage_offset() == offset_in_base(graph, result) - offset_in_base(graph, source);
}

bool view_holds(const ir::Graph& graph, const ir::Node& node, std::span<const c10::IValue> opaques) {
  const ir::ValueId source = *node.args[0].value();
  const at::Tensor argument = without_data(graph.type(source));
  const bool takes_another = std::any_of(node.args.begin() + 1, node.args.end(), ir::holds_value);
  if (!argument.defined() || takes_another) return true;
  ExternCall call;
  call.op = node.as<ir::Call>()->op;
  call.args = node.args;
  call.args[0] = ir::Arg{ir::ValueId{0}};
  torch::jit::Stack stack;
  PreparedCall(call, {opaques.begin(), opaques.end()}).run({argument}, stack);
  const std::vector<at::Tensor> made = tensors_of(stack);
  if (made.size() != node.results.size()) return false;
  for (size_t i = 0; i < made.size(); ++i) {
    if (!is_as_said(graph, source, node.results[i], argument, made[i])) return false;
  }
  return true;
}

}  // namespace

bool views_are_as_libtorch_makes_them(const ir::Graph& graph, std::span<const c10::IValue> opaques) {
  const c10::InferenceMode inference;
  try {
    return std::ranges::all_of(graph.order(), [&](ir::NodeId id) {
      const ir::Node& node = graph.node(id);
      return !is_checked_view(graph, node) || view_holds(graph, node, opaques);
    });
  } catch (const c10::Error&) {
    return false;
  }
}

}  // namespace sinter::frontend
