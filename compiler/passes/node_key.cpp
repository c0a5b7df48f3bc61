#include "compiler/passes/node_key.h"

#include "compiler/ir/print.h"

namespace sinter::passes {
namespace {

using namespace ir;

std::string operation_of(const Node& node) {
  if (const auto* call = node.as<Call>()) return call->op;
  if (const auto* primitive = node.as<Primitive>()) return std::string(row(primitive->op).name);
  if (const auto* view = node.as<View>()) return "view " + std::to_string(view->offset);
  if (const auto* join = node.as<Join>()) return "join " + std::to_string(join->dim);
  if (const auto* position = node.as<Position>()) return "position " + std::to_string(position->dim);
  if (const auto* gather = node.as<Gather>()) {
    std::string text = "gather";
    for (const uint32_t dim : gather->dims) text += " " + std::to_string(dim);
    return text;
  }
  if (const auto* attention = node.as<Attention>()) {
    return "attention " + ir::to_string(Arg{attention->scale}) + (attention->zeros ? " zeros" : "") +
           (attention->causal ? " causal" : "");
  }
  const auto* reduce = node.as<Reduce>();
  if (reduce == nullptr) return {};
  std::string text = "reduce " + std::string(row(reduce->op).name);
  for (const uint32_t dim : reduce->dims) text += "," + std::to_string(dim);
  return text;
}

std::string type_key(const Type& type) {
  std::string text = " " + std::string(name(type.dtype)) + to_string(type.device);
  for (const Dim& size : type.sizes) text += "," + to_string(size);
  for (const Dim& stride : type.strides) text += ";" + to_string(stride);
  return text;
}

}  // namespace

std::string node_key(const Graph& graph, const Node& node, std::span<const Arg> args) {
  std::string key = operation_of(node);
  if (key.empty()) return {};
  for (const Arg& arg : args) key += " " + ir::to_string(arg);
  for (const ValueId result : node.results) {
    if (graph.value(result).alias) return {};
    key += type_key(graph.type(result));
  }
  return key;
}

}  // namespace sinter::passes
