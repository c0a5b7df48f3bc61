#include "compiler/ir/interpret.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "compiler/ir/index.h"
#include "compiler/ir/op_types.h"
#include "compiler/ir/print.h"
#include "compiler/support/errors.h"

namespace sinter::ir {
namespace {

/// One operand at the points of the result: a broadcast tensor, or a number.
class Operand {
 public:
  Operand(HostTensor tensor, std::span<const int64_t> result_sizes)
      : tensor_(std::move(tensor)), map_(broadcast_map(tensor_->type.static_sizes(), result_sizes)), at_(map_.size()) {}
  explicit Operand(RefValue number) : number_(number) {}

  RefValue operator()(std::span<const int64_t> point) {
    if (!tensor_) return number_;
    for (size_t d = 0; d < map_.size(); ++d) at_[d] = evaluate(map_[d], point);
    return tensor_->at(at_);
  }

 private:
  std::optional<HostTensor> tensor_;
  std::vector<Index> map_;
  std::vector<int64_t> at_;
  RefValue number_;
};

RefValue number_of(const Arg& arg) {
  if (const auto* flag = std::get_if<bool>(&arg.data)) return static_cast<int64_t>(*flag);
  if (const auto* integer = std::get_if<int64_t>(&arg.data)) return *integer;
  if (const auto* real = std::get_if<double>(&arg.data)) return *real;
  throw UserError(fmt::format("interpret: '{}' is no operand of a pointwise op", to_string(arg)));
}

class Interpreter {
 public:
  Interpreter(const Graph& graph, const Environment& environment)
      : graph_(graph), environment_(environment), values_(graph.value_count()) {}

  std::vector<HostTensor> run() {
    for (NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      for (ValueId result : node.results) check_static(result);
      std::visit([&](const auto& payload) { evaluate_node(payload, node); }, node.payload);
    }
    std::vector<HostTensor> outputs;
    for (ValueId output : graph_.outputs) outputs.push_back(value(output));
    outputs.insert(outputs.end(), written_.begin(), written_.end());
    return outputs;
  }

 private:
  void check_static(ValueId id) const {
    if (graph_.type(id).is_static()) return;
    throw UserError(
        fmt::format("interpret: {} is symbolic; give the sizes as numbers", to_string(graph_.type(id), graph_.device)));
  }

  const HostTensor& value(ValueId id) const {
    if (id.index < values_.size() && values_[id.index]) return *values_[id.index];
    throw UserError(fmt::format("interpret: graph @{} uses a value that no node defines", graph_.name));
  }

  void evaluate_node(const Input& input, const Node& node) { leaf("input", input.index, environment_.inputs, node); }
  void evaluate_node(const State& state, const Node& node) { leaf("state", state.index, environment_.states, node); }

  void leaf(std::string_view what, uint32_t index, const std::vector<HostTensor>& given, const Node& node) {
    if (index >= given.size()) throw UserError(fmt::format("interpret: {} {} is not given", what, index));
    const Type& wanted = graph_.type(node.results.at(0));
    const Type& found = given[index].type;
    if (found.dtype != wanted.dtype || found.sizes != wanted.sizes) {
      throw UserError(fmt::format("interpret: {} {} is {}, the graph takes {}", what, index,
                                  to_string(found, graph_.device), to_string(wanted, graph_.device)));
    }
    define(node, 0, with_type(given[index], wanted));
  }

  /// The tensor itself where its strides are the wanted ones, else a copy that has them.
  static HostTensor with_type(const HostTensor& tensor, const Type& wanted) {
    HostTensor result = tensor.type.strides == wanted.strides ? tensor : tensor_of(wanted, elements_of(tensor));
    result.type = wanted;
    return result;
  }

  void evaluate_node(const Call& call, const Node& node) {
    if (!environment_.call)
      throw UserError(fmt::format("interpret: '{}' is an ATen call, which the interpreter does not run", call.op));
    std::vector<HostTensor> values;
    for (const Arg& arg : node.args) for_each_value(arg, [&](ValueId id) { values.push_back(value(id)); });
    define_all(node, environment_.call(node, values), call.op);
  }

  void evaluate_node(const Fused& fused, const Node& node) {
    Environment inside;
    for (const Arg& arg : node.args) for_each_value(arg, [&](ValueId id) { inside.inputs.push_back(value(id)); });
    if (fused.body == nullptr) throw UserError(fmt::format("interpret: {} has no body", fused.name));
    define_all(node, Interpreter(*fused.body, inside).run(), fused.name);
  }

  void evaluate_node(const Write&, const Node& node) { written_.push_back(value(*node.args.at(1).value())); }

  void define_all(const Node& node, const std::vector<HostTensor>& results, std::string_view what) {
    if (results.size() != node.results.size()) {
      throw UserError(fmt::format("interpret: {} gave {} results for {}", what, results.size(), node.results.size()));
    }
    for (size_t i = 0; i < results.size(); ++i) define(node, i, with_type(results[i], graph_.type(node.results[i])));
  }

  void evaluate_node(const View& view, const Node& node) {
    HostTensor result = value(*node.args.at(0).value());
    result.type = graph_.type(node.results.at(0));
    result.offset += view.offset;
    define(node, 0, std::move(result));
  }

  void evaluate_node(const Primitive& primitive, const Node& node) {
    const OpRow& op = row(primitive.op);
    if (!op.is_native())
      throw UserError(fmt::format("interpret: '{}' is no primitive; run the decompose pass first", op.name));
    const Type& type = graph_.type(node.results.at(0));
    const std::vector<int64_t> sizes = type.static_sizes();
    const DType computation = computation_of(op, node);
    std::vector<Operand> operands;
    for (size_t i = 0; i < node.args.size(); ++i) operands.push_back(operand(op, node, i, sizes, computation));
    HostTensor result = zeros(type);
    std::vector<RefValue> args(operands.size());
    for_each_point(sizes, [&](std::span<const int64_t> point) {
      for (size_t i = 0; i < operands.size(); ++i) args[i] = operands[i](point);
      result.set(point, stored(op.native().reference(args, computation), type.dtype));
    });
    define(node, 0, std::move(result));
  }

  /// Element by element in the operand's row-major order, floats in double.
  void evaluate_node(const Reduce& reduce, const Node& node) {
    const HostTensor& operand = value(*node.args.at(0).value());
    const Type& type = graph_.type(node.results.at(0));
    const Reference combine = row(combiner(reduce.op)).native().reference;
    HostTensor wide = zeros(type);
    std::vector<RefValue> joined(static_cast<size_t>(type.numel()), as_reference(identity(reduce.op, type.dtype)));
    const std::vector<int64_t> sizes = type.static_sizes();
    for_each_point(operand.type.static_sizes(), [&](std::span<const int64_t> point) {
      RefValue& total = joined[result_number(point, sizes)];
      total = combine(std::array{total, operand.at(point)}, type.dtype);
    });
    for_each_point(sizes, [&](std::span<const int64_t> point) {
      wide.set(point, stored(joined[result_number(point, sizes)], type.dtype));
    });
    define(node, 0, std::move(wide));
  }

  void evaluate_node(const Join& join, const Node& node) {
    HostTensor result = zeros(graph_.type(node.results.at(0)));
    int64_t begin = 0;
    for (const Arg& arg : node.args) {
      const HostTensor& operand = value(*arg.value());
      std::vector<int64_t> place(operand.type.rank());
      for_each_point(operand.type.static_sizes(), [&](std::span<const int64_t> point) {
        std::ranges::copy(point, place.begin());
        place[join.dim] += begin;
        result.set(place, operand.at(point));
      });
      begin += operand.type.sizes[join.dim].value();
    }
    define(node, 0, std::move(result));
  }

  void evaluate_node(const Attention& attention, const Node& node) {
    HostTensor result = zeros(graph_.type(node.results.at(0)));
    const HostTensor &query = value(*node.args[0].value()), &key = value(*node.args[1].value()),
                     &values = value(*node.args[2].value());
    const HostTensor* bias = node.args.size() == 4 ? &value(*node.args[3].value()) : nullptr;
    const size_t row = result.type.rank() - 2;
    const auto vector = result.type.sizes[row + 1].value(), keys = key.type.sizes[row].value();
    std::vector<int64_t> rows = result.type.static_sizes();
    rows.back() = 1;
    for_each_point(rows, [&](std::span<const int64_t> point) {
      std::vector<int64_t> place(point.begin(), point.end()), other = place;
      std::vector<double> weights;
      for (other[row] = 0; other[row] < keys; ++other[row]) {
        double score = 0;
        for (place.back() = other.back() = 0; place.back() < vector; ++place.back(), ++other.back()) {
          score += std::get<double>(query.at(place)) * std::get<double>(key.at(other));
        }
        weights.push_back(score * attention.scale);
        place.back() = other[row];
        if (attention.causal && other[row] > point[row]) weights.back() = -std::numeric_limits<double>::infinity();
        if (bias != nullptr) weights.back() += std::get<double>(bias->at(place_in(bias->type, place)));
      }
      softmax(weights, attention.zeros);
      for (int64_t element = 0; element < vector; ++element) {
        double sum = 0;
        place.back() = other.back() = element;
        for (other[row] = 0; other[row] < keys; ++other[row]) {
          sum += weights[static_cast<size_t>(other[row])] * std::get<double>(values.at(other));
        }
        result.set(place, stored(sum, result.type.dtype));
      }
    });
    define(node, 0, std::move(result));
  }

  static void softmax(std::vector<double>& numbers, bool zeros) {
    const double most = numbers.empty() ? 0 : *std::ranges::max_element(numbers);
    if (zeros && most == -std::numeric_limits<double>::infinity()) {
      numbers.assign(numbers.size(), 0);
      return;
    }
    double sum = 0;
    for (double& number : numbers) sum += number = std::exp(number - most);
    for (double& number : numbers) number /= sum;
  }

  void evaluate_node(const Gather& gather, const Node& node) {
    const HostTensor& source = value(*node.args.at(0).value());
    HostTensor result = zeros(graph_.type(node.results.at(0)));
    for_each_point(result.type.static_sizes(), [&](std::span<const int64_t> point) {
      std::vector<int64_t> place = place_in(source.type, point);
      for (size_t i = 0; i < gather.dims.size(); ++i) {
        const HostTensor& positions = value(*node.args.at(1 + i).value());
        place[gather.dims[i]] = position_at(positions, point, source.type.sizes[gather.dims[i]].value());
      }
      result.set(point, source.at(place));
    });
    define(node, 0, std::move(result));
  }

  void evaluate_node(const Position& position, const Node& node) {
    HostTensor result = zeros(graph_.type(node.results.at(0)));
    for_each_point(result.type.static_sizes(),
                   [&](std::span<const int64_t> point) { result.set(point, point[position.dim]); });
    define(node, 0, std::move(result));
  }

  /// Where a value that broadcasts to the point's sizes is read.
  static std::vector<int64_t> place_in(const Type& type, std::span<const int64_t> point) {
    const std::span<const int64_t> own = point.last(type.rank());
    std::vector<int64_t> place(own.begin(), own.end());
    for (size_t d = 0; d < place.size(); ++d) {
      if (type.sizes[d] == Dim(1)) place[d] = 0;
    }
    return place;
  }

  static int64_t position_at(const HostTensor& positions, std::span<const int64_t> point, int64_t size) {
    const int64_t position = std::get<int64_t>(positions.at(place_in(positions.type, point)));
    if (position >= 0 && position < size) return position;
    throw UserError(fmt::format("interpret: a gather reads element {} of {}", position, size));
  }

  /// The row-major number of the result's element that an element of the operand goes to.
  static size_t result_number(std::span<const int64_t> point, std::span<const int64_t> sizes) {
    int64_t number = 0;
    for (size_t d = 0; d < sizes.size(); ++d) number = number * sizes[d] + std::min(point[d], sizes[d] - 1);
    return static_cast<size_t>(number);
  }

  static RefValue as_reference(const Scalar& scalar) {
    if (const auto* real = std::get_if<double>(&scalar)) return *real;
    if (const auto* integer = std::get_if<int64_t>(&scalar)) return *integer;
    return static_cast<int64_t>(std::get<bool>(scalar));
  }

  /// The dtype an op computes in: that of its operands where the result is b8, else that of the result.
  [[nodiscard]] DType computation_of(const OpRow& op, const Node& node) const {
    const DType result = graph_.type(node.results[0]).dtype;
    if (op.rule == TypeRule::cast) return result;
    if (op.rule != TypeRule::compare && op.rule != TypeRule::predicate) return computation_dtype(result);
    for (const Arg& arg : node.args) {
      if (const ValueId* operand = arg.value()) return computation_dtype(graph_.type(*operand).dtype);
    }
    return DType::f64;
  }

  Operand operand(const OpRow& op, const Node& node, size_t position, std::span<const int64_t> sizes,
                  DType computation) {
    const Arg& arg = node.args[position];
    if (const ValueId* id = arg.value()) return {value(*id), sizes};
    const bool condition = op.rule == TypeRule::select && position == 0;
    const bool exact = op.rule == TypeRule::cast;
    return Operand(exact ? number_of(arg) : stored(number_of(arg), condition ? DType::b8 : computation));
  }

  void define(const Node& node, size_t result, HostTensor tensor) {
    values_[node.results.at(result).index] = std::move(tensor);
  }

  const Graph& graph_;
  const Environment& environment_;
  std::vector<std::optional<HostTensor>> values_;
  std::vector<HostTensor> written_;
};

}  // namespace

std::vector<HostTensor> interpret(const Graph& graph, const Environment& environment) {
  return Interpreter(graph, environment).run();
}

}  // namespace sinter::ir
