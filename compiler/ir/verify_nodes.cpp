#include "compiler/ir/verify_nodes.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/op_types.h"
#include "compiler/ir/print.h"
#include "compiler/ir/reading.h"
#include "compiler/ir/verify.h"

namespace sinter::ir {
namespace {

using Problem = std::optional<std::string>;

/// bool < integer < float, as in ATen's type promotion.
int category(DType dtype) { return is_float(dtype) ? 2 : is_int(dtype) ? 1 : 0; }
int category(const Arg& scalar) {
  return std::holds_alternative<double>(scalar.data) ? 2 : std::holds_alternative<int64_t>(scalar.data) ? 1 : 0;
}

std::string sizes_text(std::span<const Dim> sizes) {
  std::string text;
  for (const Dim& size : sizes) text += (text.empty() ? "" : ",") + to_string(size);
  return "[" + text + "]";
}

/// The operand holds `wanted`: a value of that dtype, or a scalar that does not promote it.
Problem operand_problem(const Graph& graph, const Node& node, size_t position, DType wanted) {
  const Arg& arg = node.args[position];
  if (const ValueId* value = arg.value()) {
    const DType found = graph.type(*value).dtype;
    if (found == wanted) return std::nullopt;
    return fmt::format("operand {} is {} where {} is needed", position, name(found), name(wanted));
  }
  if (category(arg) <= category(wanted)) return std::nullopt;
  return fmt::format("operand {} is the number {}, which {} does not hold", position, to_string(arg), name(wanted));
}

Problem operands_problem(const Graph& graph, const Node& node, size_t first, DType wanted) {
  for (size_t i = first; i < node.args.size(); ++i) {
    if (auto problem = operand_problem(graph, node, i, wanted)) return problem;
  }
  return std::nullopt;
}

/// Dtype of the first operand that is a value.
std::optional<DType> operand_dtype(const Graph& graph, const Node& node) {
  for (const Arg& arg : node.args) {
    if (const ValueId* value = arg.value()) return graph.type(*value).dtype;
  }
  return std::nullopt;
}

Problem rule_problem(const Graph& graph, const Node& node, TypeRule rule) {
  const DType result = graph.type(node.results[0]).dtype;
  switch (rule) {
    case TypeRule::cast:
      return std::nullopt;
    case TypeRule::same:
      return operands_problem(graph, node, 0, result);
    case TypeRule::floating:
    case TypeRule::float_like:
      if (!is_float(result)) return fmt::format("the result is {}, not a float", name(result));
      return operands_problem(graph, node, 0, result);
    case TypeRule::integral:
      if (is_float(result)) return fmt::format("the result is {}, not an integer or b8", name(result));
      return operands_problem(graph, node, 0, result);
    case TypeRule::compare:
    case TypeRule::predicate:
      if (result != DType::b8) return fmt::format("the result is {}, not b8", name(result));
      return operands_problem(graph, node, 0, operand_dtype(graph, node).value_or(DType::f64));
    case TypeRule::select:
      if (auto problem = operand_problem(graph, node, 0, DType::b8)) return problem;
      return operands_problem(graph, node, 1, result);
  }
  return std::nullopt;
}

/// Operands are values or numbers that a kernel can read.
Problem readable_problem(const Graph& graph, const Node& node) {
  const Type& result = graph.type(node.results[0]);
  if (!is_kernel_dtype(result.dtype))
    return fmt::format("the result is {}, which no kernel computes", name(result.dtype));
  for (size_t i = 0; i < node.args.size(); ++i) {
    const ValueId* value = node.args[i].value();
    if (value == nullptr && !node.args[i].is_scalar()) return fmt::format("operand {} is no value and no number", i);
    if (value == nullptr) continue;
    const Type& type = graph.type(*value);
    if (!is_kernel_dtype(type.dtype))
      return fmt::format("operand {} is {}, which no kernel reads", i, name(type.dtype));
    if (!reading_of(graph, *value).plain()) return fmt::format("operand {} is a conjugated or negated view", i);
    const bool host_scalar = type.rank() == 0 && type.device.kind == Device::Kind::cpu;
    if (type.device == result.device || host_scalar) continue;
    return fmt::format("operand {} is on {}, the result on {}", i, to_string(type.device), to_string(result.device));
  }
  return std::nullopt;
}

Problem sizes_problem(const Graph& graph, const Node& node) {
  std::vector<Dim> sizes;
  for (const Arg& arg : node.args) {
    if (arg.value() == nullptr) continue;
    const std::vector<Dim>& operand = graph.type(*arg.value()).sizes;
    auto joined = broadcast(sizes, operand);
    if (!joined) return fmt::format("sizes {} and {} do not broadcast", sizes_text(sizes), sizes_text(operand));
    sizes = *std::move(joined);
  }
  const std::vector<Dim>& result = graph.type(node.results[0]).sizes;
  if (sizes == result) return std::nullopt;
  const bool repeats = row(node.as<Primitive>()->op).rule == TypeRule::cast;  // a cast broadcasts to its result
  if (repeats && broadcast(sizes, result) == result) return std::nullopt;
  return fmt::format("the result has sizes {}, its operands broadcast to {}", sizes_text(result), sizes_text(sizes));
}

/// Every element has a place of its own, so that it can be written.
Problem overlap_problem(const Type& type) {
  if (!type.is_static() || !overlaps_itself(type)) return std::nullopt;
  return fmt::format("the result's strides {} overlap", sizes_text(type.strides));
}

bool is_identifier(std::string_view text) {
  const auto word = [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !text.empty() && (text[0] < '0' || text[0] > '9') && std::all_of(text.begin(), text.end(), word);
}

Problem body_inputs_problem(const Graph& graph, const Node& node, const Graph& body) {
  size_t inputs = 0;
  for (NodeId id : body.order()) {
    const auto* input = body.node(id).as<Input>();
    if (input == nullptr) continue;
    if (input->index != inputs) return fmt::format("the body's input {} comes as number {}", input->index, inputs);
    if (inputs >= node.args.size()) break;
    const Type& inside = body.type(body.node(id).results.at(0));
    const Type& outside = graph.type(*node.args[inputs].value());
    if (inside != outside) {
      return fmt::format("the body's input {} is {}, its arg {}", inputs, to_string(inside, graph.device),
                         to_string(outside, graph.device));
    }
    ++inputs;
  }
  if (inputs == node.args.size()) return std::nullopt;
  return fmt::format("the body has {} inputs for {} args", inputs, node.args.size());
}

bool reduces(const Graph& body) {
  return std::any_of(body.order().begin(), body.order().end(),
                     [&](NodeId id) { return body.node(id).as<Reduce>() != nullptr; });
}

Problem body_outputs_problem(const Graph& graph, const Node& node, const Graph& body) {
  if (body.outputs.size() != node.results.size()) {
    return fmt::format("the body has {} outputs for {} results", body.outputs.size(), node.results.size());
  }
  for (size_t i = 0; i < node.results.size(); ++i) {
    if (body.outputs[i].index >= body.value_count()) return fmt::format("the body's output {} does not exist", i);
    const Type& inside = body.type(body.outputs[i]);
    const Type& outside = graph.type(node.results[i]);
    if (inside != outside) {
      return fmt::format("the body's output {} is {}, the node's result {}", i, to_string(inside, graph.device),
                         to_string(outside, graph.device));
    }
    if (outside.sizes != graph.type(node.results[0]).sizes && !reduces(body)) {
      return fmt::format("result {} has sizes {}, result 0 {}", i, sizes_text(outside.sizes),
                         sizes_text(graph.type(node.results[0]).sizes));
    }
    if (auto problem = overlap_problem(outside)) return problem;
  }
  return std::nullopt;
}

}  // namespace

bool overlaps_itself(const Type& type) {
  if (type.numel() == 0) return false;
  std::vector<std::pair<int64_t, int64_t>> by_stride;
  for (size_t d = 0; d < type.rank(); ++d) {
    if (type.sizes[d] != Dim(1)) by_stride.emplace_back(type.strides[d].constant(), type.sizes[d].constant());
  }
  std::sort(by_stride.begin(), by_stride.end());
  int64_t span = 1;
  for (const auto& [stride, size] : by_stride) {
    if (stride < span) return true;
    span += (size - 1) * stride;
  }
  return false;
}

Problem type_problem(const Type& type) {
  if (type.sizes.size() != type.strides.size()) {
    return fmt::format("{} sizes but {} strides", type.sizes.size(), type.strides.size());
  }
  double elements = 1;
  double span = 1;
  for (size_t d = 0; d < type.rank(); ++d) {
    for (const Dim* dim : {&type.sizes[d], &type.strides[d]}) {
      if (dim->is_static() && dim->constant() < 0) return fmt::format("dim {} has a negative size or stride", d);
    }
    const double size = std::max(1.0, static_cast<double>(type.sizes[d].constant()));
    elements *= size;
    span += (size - 1) * static_cast<double>(type.strides[d].constant());
  }
  if (elements > 4e18 || span > 4e18) return "more elements than 63 bits count";
  return std::nullopt;
}

Problem primitive_problem(const Graph& graph, const Node& node) {
  const OpId op = node.as<Primitive>()->op;
  if (op.index >= op_table().size()) return "an op that the table does not have";
  const OpRow& op_row = row(op);
  if (!op_row.is_native()) return fmt::format("{} is no primitive: the decompose pass rewrites it", op_row.name);
  if (node.args.size() != op_row.arity) {
    return fmt::format("{} takes {} operands, has {}", op_row.name, op_row.arity, node.args.size());
  }
  if (node.results.size() != 1) return fmt::format("{} has {} results", op_row.name, node.results.size());
  auto problem = readable_problem(graph, node);
  if (!problem) problem = rule_problem(graph, node, op_row.rule);
  if (!problem) problem = sizes_problem(graph, node);
  if (!problem) problem = overlap_problem(graph.type(node.results[0]));
  if (problem) return fmt::format("{}: {}", op_row.name, *problem);
  return std::nullopt;
}

Problem reduce_problem(const Graph& graph, const Node& node) {
  const auto& reduce = *node.as<Reduce>();
  if (reduce.op.index >= reduction_table().size()) return "a reduction that the table does not have";
  if (node.args.size() != 1 || node.args[0].value() == nullptr) return "a reduction has one operand, a value";
  if (node.results.size() != 1) return fmt::format("a reduction has one result, not {}", node.results.size());
  const Type& operand = graph.type(*node.args[0].value());
  const Type& result = graph.type(node.results[0]);
  if (!reduces(reduce.op, operand.dtype)) {
    return fmt::format("{} does not take {}", row(reduce.op).name, name(operand.dtype));
  }
  if (result.dtype != operand.dtype) return fmt::format("{} of {}", name(result.dtype), name(operand.dtype));
  if (result.device != operand.device || !reading_of(graph, *node.args[0].value()).plain()) {
    return "its operand is on another device, or a conjugated or negated view";
  }
  std::vector<Dim> sizes = operand.sizes;
  for (size_t i = 0; i < reduce.dims.size(); ++i) {
    const uint32_t dim = reduce.dims[i];
    if (dim >= sizes.size() || (i > 0 && dim <= reduce.dims[i - 1]))
      return "its dims are not ascending dims of its operand";
    sizes[dim] = 1;
  }
  if (reduce.dims.empty()) return "a reduction over no dim";
  if (sizes != result.sizes) {
    return fmt::format("the result has sizes {}, not {}", sizes_text(result.sizes), sizes_text(sizes));
  }
  return overlap_problem(result);
}

Problem join_problem(const Graph& graph, const Node& node) {
  if (node.args.empty()) return "a join of nothing";
  if (node.results.size() != 1) return fmt::format("a join has one result, not {}", node.results.size());
  const uint32_t dim = node.as<Join>()->dim;
  const Type& result = graph.type(node.results[0]);
  if (dim >= result.rank()) return fmt::format("a join over dim {} of {}", dim, result.rank());
  std::vector<Dim> sizes = result.sizes;
  sizes[dim] = 0;
  for (size_t i = 0; i < node.args.size(); ++i) {
    const ValueId* value = node.args[i].value();
    if (value == nullptr) return fmt::format("operand {} is no value", i);
    const Type& operand = graph.type(*value);
    if (operand.dtype != result.dtype || operand.rank() != result.rank()) {
      return fmt::format("operand {} is {}, the result {}", i, to_string(operand, graph.device),
                         to_string(result, graph.device));
    }
    const Dim joined = sizes[dim] + operand.sizes[dim];
    sizes[dim] = operand.sizes[dim];
    if (operand.sizes != sizes) return fmt::format("operand {} has other sizes beside the dim", i);
    sizes[dim] = joined;
  }
  if (sizes != result.sizes) {
    return fmt::format("the result has sizes {}, its operands join to {}", sizes_text(result.sizes), sizes_text(sizes));
  }
  if (auto problem = readable_problem(graph, node)) return problem;
  return overlap_problem(result);
}

Problem gather_problem(const Graph& graph, const Node& node) {
  const std::vector<uint32_t>& dims = node.as<Gather>()->dims;
  if (dims.empty() || node.args.size() != 1 + dims.size()) return "a gather has an operand and a position for each dim";
  if (node.results.size() != 1) return fmt::format("a gather has one result, not {}", node.results.size());
  const Type& result = graph.type(node.results[0]);
  for (size_t i = 0; i < node.args.size(); ++i) {
    if (node.args[i].value() == nullptr) return fmt::format("operand {} is no value", i);
    if (i == 0) continue;
    const Type& position = graph.type(*node.args[i].value());
    if (!is_position(position.dtype)) return fmt::format("positions are {}", name(position.dtype));
    if (broadcast(position.sizes, result.sizes) != result.sizes) return "positions do not broadcast to the result";
  }
  const Type& operand = graph.type(*node.args[0].value());
  if (operand.dtype != result.dtype || operand.rank() != result.rank()) {
    return fmt::format("the operand is {}, the result {}", to_string(operand, graph.device),
                       to_string(result, graph.device));
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] >= result.rank() || (i > 0 && dims[i] <= dims[i - 1])) return "its dims are not ascending dims of it";
  }
  for (uint32_t d = 0; d < result.rank(); ++d) {
    const bool gathered = std::ranges::find(dims, d) != dims.end();
    if (!gathered && operand.sizes[d] != result.sizes[d] && operand.sizes[d] != Dim(1)) {
      return fmt::format("the operand has other sizes along dim {}", d);
    }
  }
  if (auto problem = readable_problem(graph, node)) return problem;
  return overlap_problem(result);
}

Problem attention_problem(const Graph& graph, const Node& node) {
  if (node.args.size() != 3 && node.args.size() != 4) return "an attention has queries, keys, values, and maybe a bias";
  if (node.results.size() != 1) return fmt::format("an attention has one result, not {}", node.results.size());
  const Type& result = graph.type(node.results[0]);
  if (!is_half(result.dtype) || !result.is_static() || result.rank() < 2) return "an attention gives static halves";
  for (size_t i = 0; i < node.args.size(); ++i) {
    if (node.args[i].value() == nullptr) return fmt::format("operand {} is no value", i);
    const Type& operand = graph.type(*node.args[i].value());
    if (operand.dtype != result.dtype || operand.rank() != result.rank() || !operand.is_static()) {
      return fmt::format("operand {} is {}, the result {}", i, to_string(operand, graph.device),
                         to_string(result, graph.device));
    }
  }
  const size_t rows = result.rank() - 2;
  const Type& key = graph.type(*node.args[1].value());
  std::vector<Dim> sizes = result.sizes;
  if (graph.type(*node.args[0].value()).sizes != sizes) return "the queries have not the result's sizes";
  sizes[rows] = key.sizes[rows];
  if (key.sizes != sizes || graph.type(*node.args[2].value()).sizes != sizes) {
    return "keys or values have other sizes than the result, but for how many they are";
  }
  sizes[rows] = result.sizes[rows];
  sizes[rows + 1] = key.sizes[rows];
  if (node.args.size() == 4 && broadcast(graph.type(*node.args[3].value()).sizes, sizes) != sizes) {
    return "the bias does not broadcast to the scores";
  }
  if (auto problem = readable_problem(graph, node)) return problem;
  return overlap_problem(result);
}

Problem position_problem(const Graph& graph, const Node& node) {
  if (!node.args.empty()) return "a position has no operand";
  if (node.results.size() != 1) return fmt::format("a position has one result, not {}", node.results.size());
  const Type& result = graph.type(node.results[0]);
  if (!is_position(result.dtype)) return fmt::format("positions are {}", name(result.dtype));
  const uint32_t dim = node.as<Position>()->dim;
  if (dim >= result.rank()) return fmt::format("a position over dim {} of {}", dim, result.rank());
  return overlap_problem(result);
}

Problem view_problem(const Graph& graph, const Node& node) {
  if (node.args.size() != 1 || node.args[0].value() == nullptr) return "a view has one arg, its base";
  if (node.results.size() != 1) return fmt::format("a view has one result, not {}", node.results.size());
  const Type& base = graph.type(*node.args[0].value());
  const Type& view = graph.type(node.results[0]);
  const int64_t offset = node.as<View>()->offset;
  if (view.dtype != base.dtype) return fmt::format("a view of {} as {}", name(base.dtype), name(view.dtype));
  if (view.device != base.device)
    return fmt::format("a view of {} on {}", to_string(base.device), to_string(view.device));
  if (offset < 0) return fmt::format("a view opens {} elements before its base", -offset);
  if (!view.is_static() || !base.is_static() || view.numel() == 0) return std::nullopt;
  if (offset <= base.span() - view.span()) return std::nullopt;
  return fmt::format("the view reaches element {} of a base that ends at {}", offset + view.span(), base.span());
}

Problem write_problem(const Graph& graph, const Node& node) {
  const bool two_values = node.args.size() == 2 && node.args[0].value() != nullptr && node.args[1].value() != nullptr;
  if (!two_values || !node.results.empty()) return "a write has two args, an input or state and a value, and no result";
  const Node& target = graph.producer(*node.args[0].value());
  if (target.as<Input>() == nullptr && target.as<State>() == nullptr) return "a write goes to an input or state only";
  const Type& memory = graph.type(*node.args[0].value());
  const Type& value = graph.type(*node.args[1].value());
  if (memory.dtype != value.dtype || memory.sizes != value.sizes || memory.device != value.device) {
    return fmt::format("a write of {} to {}", to_string(value, graph.device), to_string(memory, graph.device));
  }
  return std::nullopt;
}

Problem fused_problem(const Graph& graph, const Node& node) {
  const auto& fused = *node.as<Fused>();
  if (!is_identifier(fused.name)) return fmt::format("'{}' is no C identifier", fused.name);
  if (fused.body == nullptr) return fmt::format("{} has no body", fused.name);
  if (node.results.empty()) return fmt::format("{} has no result", fused.name);
  const auto is_value = [](const Arg& arg) { return arg.value() != nullptr; };
  if (!std::all_of(node.args.begin(), node.args.end(), is_value)) return "a fused node takes values only";
  auto problem = body_inputs_problem(graph, node, *fused.body);
  if (!problem) problem = body_outputs_problem(graph, node, *fused.body);
  if (problem) return fmt::format("{}: {}", fused.name, *problem);
  return std::nullopt;
}

}  // namespace sinter::ir
