#include "random_graph.h"

#include <algorithm>
#include <array>
#include <random>

namespace sinter::passes {
namespace {

using namespace ir;

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  Graph run() {
    graph_.name = "random";
    for (uint32_t i = 0; i < 2; ++i) values_.push_back(graph_.add1(Input{i}, {}, random_type()));
    values_.push_back(graph_.add1(State{0, "weight"}, {}, random_type()));
    const size_t nodes = 4 + pick(16);
    while (values_.size() < nodes) add_node();
    const size_t outputs = 1 + pick(3);
    for (size_t i = 0; i < outputs; ++i) graph_.outputs.push_back(values_[values_.size() - 1 - pick(4)]);
    return std::move(graph_);
  }

 private:
  size_t pick(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }
  ValueId any_value() { return values_[pick(values_.size())]; }

  Type random_type() {
    constexpr std::array<int64_t, 4> sizes = {1, 2, 3, 4};
    std::vector<Dim> dims(1 + pick(3));
    for (Dim& dim : dims) dim = sizes[pick(sizes.size())];
    Type type = contiguous(DType::f32, dims, graph_.device);
    if (type.rank() == 2 && pick(3) == 0) type.strides = {1, dims[0]};
    return type;
  }

  void add_node() {
    switch (pick(8)) {
      case 0:
        return add_view();
      case 1:
        return add_view();
      case 2:
        return add_cast();
      case 3:
        return add_call();
      case 4:
        return pick(2) == 0 ? add_constant() : add_join();
      default:
        return add_pointwise();
    }
  }

  void push(ValueId value) { values_.push_back(value); }

  Type result_type(DType dtype, const std::vector<Dim>& sizes, ValueId like) {
    Type type = contiguous(dtype, sizes, graph_.device);
    const Type& other = graph_.type(like);
    if (other.sizes == sizes && other.is_dense()) type.strides = other.strides;
    return type;
  }

  ValueId as_f32(ValueId value) {
    if (graph_.type(value).dtype == DType::f32) return value;
    return graph_.add1(Primitive{op_named("cast")}, {{value}},
                       result_type(DType::f32, graph_.type(value).sizes, value));
  }

  void add_pointwise() {
    constexpr std::array<std::string_view, 6> ops = {"add", "sub", "mul", "maximum", "minimum", "abs"};
    const OpId op = op_named(ops[pick(ops.size())]);
    const ValueId a = as_f32(any_value());
    std::vector<Dim> sizes = graph_.type(a).sizes;
    std::vector<Arg> args = {{a}};
    if (row(op).arity == 2) {
      constexpr std::array<double, 4> numbers = {0.0, 1.0, -1.0, 2.0};
      const ValueId b = as_f32(any_value());
      const auto joined = broadcast(sizes, graph_.type(b).sizes);
      args.push_back(joined ? Arg{b} : Arg{numbers[pick(numbers.size())]});
      if (joined) sizes = *joined;
      if (pick(2) == 0) std::swap(args[0], args[1]);
    }
    push(graph_.add1(Primitive{op}, args, result_type(DType::f32, sizes, a)));
  }

  void add_cast() {
    constexpr std::array<DType, 4> dtypes = {DType::f16, DType::f64, DType::i32, DType::f32};
    const ValueId value = any_value();
    Type type = result_type(dtypes[pick(dtypes.size())], graph_.type(value).sizes, value);
    if (type.rank() == 2 && pick(2) == 0) type.strides = {1, type.sizes[0]};
    push(graph_.add1(Primitive{op_named("cast")}, {{value}}, type));
  }

  void add_constant() {
    push(graph_.add1(Primitive{op_named("cast")}, {{static_cast<double>(pick(3))}}, random_type()));
  }

  /// A value beside another one of its sizes, or beside numbers.
  void add_join() {
    const ValueId value = any_value();
    const Type& type = graph_.type(value);
    if (type.rank() == 0) return;
    const auto dim = static_cast<uint32_t>(pick(type.rank()));
    std::vector<Dim> sizes = type.sizes;
    sizes[dim] = 1 + static_cast<int64_t>(pick(3));
    const Type block = contiguous(type.dtype, sizes, graph_.device);
    ValueId beside = any_value();
    const bool fits = graph_.type(beside).dtype == type.dtype && graph_.type(beside).sizes == type.sizes;
    if (!fits) beside = graph_.add1(Primitive{op_named("cast")}, {{1.0}}, block);
    sizes[dim] = graph_.type(value).sizes[dim] + graph_.type(beside).sizes[dim];
    std::vector<Arg> args = {{value}, {beside}};
    if (pick(2) == 0) std::swap(args[0], args[1]);
    push(graph_.add1(Join{dim}, args, contiguous(graph_.type(value).dtype, sizes, graph_.device)));
  }

  void add_call() {
    const ValueId value = any_value();
    const Type type = contiguous(graph_.type(value).dtype, graph_.type(value).sizes, graph_.device);
    push(graph_.add1(Call{"test::opaque", {}, {}, false, false}, {{value}}, type));
  }

  void add_view() {
    const ValueId base = any_value();
    Type type = graph_.type(base);
    int64_t offset = 0;
    const size_t dim = type.rank() == 0 ? 0 : pick(type.rank());
    switch (pick(4)) {
      case 0:  // transpose
        if (type.rank() < 2) return;
        std::swap(type.sizes[0], type.sizes[dim]);
        std::swap(type.strides[0], type.strides[dim]);
        break;
      case 1:  // slice
        if (type.rank() == 0 || type.sizes[dim].value() < 2) return;
        offset = type.strides[dim].value();
        type.sizes[dim] = type.sizes[dim] - 1;
        break;
      case 2:  // flatten
        if (!type.is_contiguous()) return;
        type = contiguous(type.dtype, {type.numel()}, type.device);
        break;
      default:  // broadcast along a new dim
        if (type.rank() > 2) return;
        type.sizes.insert(type.sizes.begin(), Dim(2));
        type.strides.insert(type.strides.begin(), Dim(0));
        break;
    }
    push(graph_.add1(View{offset}, {{base}}, type));
  }

  std::mt19937_64 random_;
  Graph graph_;
  std::vector<ValueId> values_;
};

}  // namespace

Graph random_graph(uint64_t seed) { return Generator(seed).run(); }

Environment random_environment(const Graph& graph, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto fill = [&](const Type& type) {
    std::vector<RefValue> elements(static_cast<size_t>(type.numel()));
    for (RefValue& element : elements) element = static_cast<double>(static_cast<int64_t>(random() % 9) - 4);
    return tensor_of(type, elements);
  };
  Environment environment;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.as<Input>()) environment.inputs.push_back(fill(graph.type(node.results[0])));
    if (node.as<State>()) environment.states.push_back(fill(graph.type(node.results[0])));
  }
  if (environment.states.empty()) environment.states.push_back(zeros({}));
  environment.call = [](const Node&, std::span<const HostTensor> values) {
    Type type = contiguous(values[0].type.dtype, values[0].type.sizes, values[0].type.device);
    std::vector<RefValue> elements = elements_of(values[0]);
    std::reverse(elements.begin(), elements.end());
    return std::vector<HostTensor>{tensor_of(type, elements)};
  };
  return environment;
}

}  // namespace sinter::passes
