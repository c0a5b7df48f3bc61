#include "random_program.h"

#include <algorithm>
#include <array>
#include <functional>
#include <random>

namespace sinter::passes {
namespace {

using namespace ir;

/// The element that a tensor, broadcast to a larger nest, has at a point of it.
double read_broadcast(const HostTensor& tensor, std::span<const int64_t> point) {
  std::vector<int64_t> own(point.end() - static_cast<int64_t>(tensor.type.rank()), point.end());
  for (size_t d = 0; d < own.size(); ++d) own[d] = tensor.type.sizes[d] == Dim(1) ? 0 : own[d];
  return std::get<double>(tensor.at(own));
}

class Programmer {
 public:
  explicit Programmer(uint64_t seed) : random_(seed), writes_inputs_(seed % 2 == 1) {}

  Graph run() {
    graph_.name = "program";
    for (uint32_t i = 0; i < 2; ++i) {
      values_.push_back(graph_.add1(Input{i}, {}, contiguous(DType::f32, {3, 4}, graph_.device)));
    }
    const size_t nodes = 6 + pick(14);
    while (graph_.node_count() < nodes) add_node();
    for (size_t i = 0; i < 3; ++i)
      graph_.outputs.push_back(values_[values_.size() - 1 - pick(std::min<size_t>(6, values_.size()))]);
    return std::move(graph_);
  }

 private:
  size_t pick(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }
  ValueId any() { return values_[pick(values_.size())]; }
  ValueId root(ValueId value) const {
    const auto& alias = graph_.value(value).alias;
    return alias ? alias->base : value;
  }
  /// One program in two leaves its inputs as they are.
  bool writable(ValueId value) const { return writes_inputs_ || graph_.producer(root(value)).as<Call>() != nullptr; }

  int64_t offset(ValueId value) const {
    const auto& alias = graph_.value(value).alias;
    return alias ? alias->offset : 0;
  }

  /// A value of these sizes, or one that broadcasts to them, or none.
  std::optional<ValueId> operand(const std::vector<Dim>& sizes) {
    for (int attempt = 0; attempt < 8; ++attempt) {
      const ValueId value = any();
      if (broadcast(sizes, graph_.type(value).sizes) == sizes) return value;
    }
    return std::nullopt;
  }

  void add_node() {
    if (pick(3) == 0) return add_view();
    const ValueId value = any();
    if (writable(value) && pick(16) == 0) return add_writes_to_parts(value);
    if (writable(value) && pick(3) > 0) return add_write(value);
    add_pure(value);
  }

  /// Writes both parts of a value, and reads parts in between.
  void add_writes_to_parts(ValueId whole) {
    const Type type = graph_.type(whole);
    if (type.rank() == 0 || !type.is_contiguous()) return;
    const size_t dim = pick(type.rank());
    const int64_t size = type.sizes[dim].value();
    if (size < 2) return;
    const int64_t cut = 1 + static_cast<int64_t>(pick(static_cast<size_t>(size - 1)));
    for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, cut}, {cut, size}}) {
      const ValueId part = add_part(whole, dim, begin, end);
      for (size_t writes = 1 + pick(2); writes > 0; --writes) add_write(part);
      if (pick(2) == 0) add_pure(pick(2) == 0 ? part : add_part(whole, dim, 0, cut));
    }
  }

  ValueId add_part(ValueId whole, size_t dim, int64_t begin, int64_t end) {
    Type type = graph_.type(whole);
    type.sizes[dim] = end - begin;
    return view_of(whole, type, offset(whole) + begin * type.strides[dim].value());
  }

  /// Looks at memory in another way, from this element on.
  ValueId view_of(ValueId value, const Type& type, int64_t offset) {
    const ValueId view = call("test::view", {{value}}, type);
    graph_.value(view).alias = Alias{root(value), offset};
    values_.push_back(view);
    return view;
  }

  ValueId call(std::string op, std::vector<Arg> args, Type type) {
    return graph_.add1(Call{std::move(op), {}, {}, false, false}, std::move(args), std::move(type));
  }

  void add_pure(ValueId value) {
    Type type = graph_.type(value);
    if (!type.is_dense()) type = contiguous(type.dtype, type.sizes, type.device);
    const auto other = operand(type.sizes);
    if (other && pick(2) == 0)
      return values_.push_back(call("aten::add.Tensor", {{value}, {*other}, {int64_t{1}}}, type));
    values_.push_back(call(pick(2) == 0 ? "aten::relu" : "test::shift", {{value}}, type));
  }

  void add_view() {
    const ValueId of = any();
    Type type = graph_.type(of);
    int64_t begin = offset(of);
    const size_t dim = type.rank() == 0 ? 0 : pick(type.rank());
    switch (pick(3)) {
      case 0:
        if (type.rank() < 2) return;
        std::swap(type.sizes[0], type.sizes[dim]);
        std::swap(type.strides[0], type.strides[dim]);
        break;
      case 1: {
        if (type.rank() == 0 || type.sizes[dim].value() < 2) return;
        begin += type.strides[dim].value();
        type.sizes[dim] = type.sizes[dim] - 1;
        break;
      }
      default:
        if (!type.is_contiguous()) return;
        type = contiguous(type.dtype, {type.numel()}, type.device);
        break;
    }
    view_of(of, type, begin);
  }

  void add_write(ValueId target) {
    const Type type = graph_.type(target);
    const auto other = operand(type.sizes);
    std::string op = "test::shift_";
    std::string pure;
    std::vector<Arg> args = {{target}};
    switch (pick(6)) {
      case 0:
        op = "aten::zero_";
        break;
      case 1:
        op = "aten::fill_.Scalar";
        args.push_back({2.0});
        break;
      case 2:
        op = "aten::relu_";
        pure = "aten::relu";
        break;
      case 3:
      case 4: {
        if (!other) break;
        const bool copies = pick(2) == 0;
        op = copies ? "aten::copy_" : "aten::add_.Tensor";
        pure = copies ? "aten::copy" : "aten::add.Tensor";
        args.push_back({*other});
        args.push_back(copies ? Arg{false} : Arg{int64_t{1}});
        break;
      }
      default:
        break;
    }
    const ValueId result = graph_.add1(Call{op, {0}, pure, false, false}, args, type);
    graph_.value(result).alias = Alias{root(target), offset(target)};
    values_.push_back(result);
  }

  std::mt19937_64 random_;
  bool writes_inputs_;
  Graph graph_;
  std::vector<ValueId> values_;
};

/// One step of an eager program.
class Eager {
 public:
  Eager(const Graph& graph, const Environment& environment) : graph_(graph), tensors_(graph.value_count()) {
    for (NodeId id : graph.order()) {
      const Node& node = graph.node(id);
      const ValueId result = node.results[0];
      if (const auto* input = node.as<Input>()) {
        const HostTensor& given = environment.inputs.at(input->index);
        tensors_[result.index] = tensor_of(given.type, elements_of(given));  // may be written
        continue;
      }
      const auto& alias = graph.value(result).alias;
      const Call& call = *node.as<Call>();
      if (alias) {
        const HostTensor& base = tensors_[alias->base.index];
        tensors_[result.index] = {graph.type(result), base.storage, base.offset + alias->offset};
      } else {
        tensors_[result.index] = zeros(graph.type(result));
      }
      if (call.op != "test::view") compute(call.op, node.args, tensors_[result.index]);
    }
  }

  HostTensor copy_of(ValueId value) const { return tensor_of(graph_.type(value), elements_of(tensors_[value.index])); }

 private:
  double read(const Arg& arg, std::span<const int64_t> point) const {
    if (const auto* real = std::get_if<double>(&arg.data)) return *real;
    return read_broadcast(tensors_[arg.value()->index], point);
  }

  void compute(std::string_view op, const std::vector<Arg>& args, HostTensor& result) {
    const auto is = [&](std::string_view name) { return op.starts_with(name); };
    std::vector<RefValue> values;
    for_each_point(result.type.static_sizes(), [&](std::span<const int64_t> point) {
      if (is("aten::zero_")) return values.emplace_back(0.0), void();
      if (is("aten::fill_") || is("aten::copy_")) return values.emplace_back(read(args[1], point)), void();
      const double x = read(args[0], point);
      if (is("aten::relu")) return values.emplace_back(std::max(x, 0.0)), void();
      if (is("aten::add")) return values.emplace_back(x + read(args[1], point)), void();
      values.emplace_back(x + 3);
    });
    size_t next = 0;
    for_each_point(result.type.static_sizes(),
                   [&](std::span<const int64_t> point) { result.set(point, values[next++]); });
  }

  const Graph& graph_;
  std::vector<HostTensor> tensors_;
};

int64_t integer(const Arg& arg) { return std::get<int64_t>(arg.data); }

HostTensor scatter(const Node& node, const HostTensor& self, const HostTensor& source) {
  HostTensor result{self.type, std::make_shared<std::vector<RefValue>>(*self.storage), self.offset};
  HostTensor window = result;
  window.type = source.type;
  window.type.strides.clear();
  for (const Arg& stride : *node.args[3].list()) window.type.strides.emplace_back(integer(stride));
  window.offset = self.offset + integer(node.args[4]);
  for_each_point(source.type.static_sizes(),
                 [&](std::span<const int64_t> point) { window.set(point, source.at(point)); });
  return result;
}

HostTensor cat(const Node& node, std::span<const HostTensor> parts) {
  const auto dim = static_cast<size_t>(integer(node.args[1]));
  Type type = contiguous(parts[0].type.dtype, parts[0].type.sizes, parts[0].type.device);
  for (const HostTensor& part : parts.subspan(1)) type.sizes[dim] = type.sizes[dim] + part.type.sizes[dim];
  HostTensor result = zeros(contiguous(type.dtype, type.sizes, type.device));
  int64_t begin = 0;
  for (const HostTensor& part : parts) {
    for_each_point(part.type.static_sizes(), [&](std::span<const int64_t> point) {
      std::vector<int64_t> behind(point.begin(), point.end());
      behind[dim] += begin;
      result.set(behind, part.at(point));
    });
    begin += part.type.sizes[dim].value();
  }
  return result;
}

}  // namespace

Graph random_program(uint64_t seed) { return Programmer(seed).run(); }

std::vector<HostTensor> run_eagerly(const Graph& program, const Environment& environment) {
  const Eager eager(program, environment);
  std::vector<HostTensor> outputs;
  for (ValueId output : program.outputs) outputs.push_back(eager.copy_of(output));
  for (NodeId id : program.order()) {
    if (program.node(id).as<Input>()) outputs.push_back(eager.copy_of(program.node(id).results[0]));
  }
  return outputs;
}

std::vector<HostTensor> answer_call(const Node& node, std::span<const HostTensor> values) {
  const std::string& op = node.as<Call>()->op;
  if (op == "aten::as_strided_scatter") return {scatter(node, values[0], values[1])};
  if (op == "aten::cat") return {cat(node, values)};
  Type type = values[0].type;
  if (!type.is_dense()) type = contiguous(type.dtype, type.sizes, type.device);
  if (op == "aten::clone") return {tensor_of(type, elements_of(values[0]))};
  if (op.starts_with("aten::")) {  // a pointwise op whose result the next call writes to stays ATen's
    HostTensor made = zeros(type);
    for_each_point(type.static_sizes(), [&](std::span<const int64_t> point) {
      const double x = read_broadcast(values[0], point);
      made.set(point, op == "aten::relu" ? std::max(x, 0.0) : x + read_broadcast(values[1], point));
    });
    return {made};
  }
  HostTensor result = op == "test::shift_" ? values[0] : zeros(type);  // in place writes what it was given
  std::vector<RefValue> elements;
  for (const RefValue& element : elements_of(values[0])) elements.emplace_back(std::get<double>(element) + 3);
  size_t next = 0;
  for_each_point(result.type.static_sizes(), [&](std::span<const int64_t> p) { result.set(p, elements[next++]); });
  return {result};
}

}  // namespace sinter::passes
