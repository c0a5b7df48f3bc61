#include "tests/emulator/random_graph.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sinter::test {
namespace {

using ir::Arg;
using ir::DType;
using ir::Graph;
using ir::Type;
using ir::ValueId;

using Sizes = std::vector<int64_t>;

std::vector<ir::Dim> dims(const Sizes& sizes) { return {sizes.begin(), sizes.end()}; }

/// Draws a graph from its outputs down to its inputs: whoever needs a value says its sizes and dtype.
class Drawing {
 public:
  explicit Drawing(uint64_t seed) : random_(seed) {
    graph_.name = "random";
    graph_.device = {.kind = ir::Device::Kind::cuda, .index = 0};
  }

  Graph run() {
    const Sizes sizes = draw_sizes();
    plan_inputs(sizes);
    const size_t outputs = 1 + below(3);
    for (size_t i = 0; i < outputs; ++i) graph_.outputs.push_back(primitive(sizes, draw_dtype(), 1 + below(4)));
    return std::move(graph_);
  }

 private:
  size_t below(size_t bound) { return random_() % bound; }
  bool chance(size_t percent) { return below(100) < percent; }
  template <class T>
  T pick(std::initializer_list<T> list) {
    return *(list.begin() + static_cast<ptrdiff_t>(below(list.size())));
  }

  Sizes draw_sizes() {
    Sizes sizes(below(5));
    for (auto& size : sizes) size = pick<int64_t>({1, 2, 3, 4, 6, 8, 12, 16});
    return sizes;
  }

  DType draw_dtype() {
    return pick({DType::f32, DType::f32, DType::f32, DType::f16, DType::f16, DType::bf16, DType::f64, DType::i64,
                 DType::i32, DType::u8, DType::b8});
  }

  /// Inputs stand before everything else, so they are drawn first; a value takes one that fits.
  void plan_inputs(const Sizes& sizes) {
    const size_t count = 2 + below(4);
    for (size_t i = 0; i < count; ++i) {
      Type type = strided(draw_dtype(), reduced(sizes));
      const bool host_scalar = type.rank() == 0 && chance(50);
      if (!host_scalar) type.device = graph_.device;
      inputs_.push_back(graph_.add1(ir::Input{.index = static_cast<uint32_t>(i)}, {}, std::move(type)));
    }
  }

  /// Sizes that broadcast to `sizes`.
  Sizes reduced(Sizes sizes) {
    if (chance(50)) return sizes;
    for (auto& size : sizes) {
      if (chance(40)) size = 1;
    }
    while (!sizes.empty() && chance(30)) sizes.erase(sizes.begin());
    return sizes;
  }

  /// A tensor of these sizes in row-major or another order, now and then with gaps or repeats.
  Type strided(DType dtype, const Sizes& sizes) {
    std::vector<size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), 0);
    if (chance(30)) std::ranges::shuffle(order, random_);
    std::vector<ir::Dim> strides(sizes.size());
    int64_t step = chance(10) ? 2 : 1;
    for (size_t i = order.size(); i-- > 0;) {
      strides[order[i]] = step;
      step *= sizes[order[i]] + (chance(15) ? 4 : 0);
    }
    for (auto& stride : strides) {
      if (chance(5)) stride = 0;
    }
    return {.dtype = dtype, .sizes = dims(sizes), .strides = std::move(strides), .device = {}};
  }

  /// A dense result in row-major or, at times, another order of the dims.
  Type dense(DType dtype, const Sizes& sizes) {
    Type type = ir::contiguous(dtype, dims(sizes), graph_.device);
    if (!chance(15)) return type;
    std::vector<size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, random_);
    int64_t step = 1;
    for (const size_t dim : order) {
      type.strides[dim] = step;
      step *= sizes[dim];
    }
    return type;
  }

  ValueId value(const Sizes& sizes, DType dtype, size_t depth) {
    if (depth == 0) return leaf(sizes, dtype);
    if (!sizes.empty() && chance(15)) return join(sizes, dtype, depth);
    if (chance(25)) return view(sizes, dtype, depth);
    return primitive(sizes, dtype, depth);
  }

  /// An input cast and broadcast to the sizes by an addition to a number, where one fits.
  ValueId leaf(const Sizes& sizes, DType dtype) {
    std::vector<ValueId> fitting;
    for (const ValueId input : inputs_) {
      const auto wide = ir::broadcast(graph_.type(input).sizes, dims(sizes));
      if (wide && *wide == dims(sizes)) fitting.push_back(input);
    }
    if (fitting.empty()) {
      const auto index = static_cast<uint32_t>(inputs_.size());
      Type type = strided(dtype, sizes);
      type.device = graph_.device;
      inputs_.push_back(graph_.add1(ir::Input{.index = index}, {}, std::move(type)));
      return inputs_.back();
    }
    const ValueId input = fitting[below(fitting.size())];
    const ValueId converted = cast(input, dtype);
    if (graph_.type(converted).sizes == dims(sizes)) return converted;
    const std::string_view op = dtype == DType::b8 ? "maximum" : "add";
    return add(op, {{converted}, {int64_t{1}}}, dense(dtype, sizes));
  }

  ValueId cast(ValueId input, DType dtype) {
    if (graph_.type(input).dtype == dtype) return input;
    Type type = graph_.type(input);
    type.dtype = dtype;
    type.device = graph_.device;
    type.strides = ir::contiguous_strides(type.sizes);
    return add("cast", {{input}}, std::move(type));
  }

  ValueId add(std::string_view op, std::vector<Arg> args, Type type) {
    return graph_.add1(ir::Primitive{ir::op_named(op)}, std::move(args), std::move(type));
  }

  ValueId primitive(const Sizes& sizes, DType dtype, size_t depth) {
    const auto operand = [&](DType wanted, bool exact) {
      return Arg{value(exact ? sizes : reduced(sizes), wanted, depth - 1)};
    };
    if (chance(15)) {
      const DType from = draw_dtype();
      const bool wraps = ir::is_float(from) && !ir::is_float(dtype);
      if (from != dtype && !wraps) return add("cast", {operand(from, true)}, dense(dtype, sizes));
    }
    if (chance(10)) {
      return add("where", {operand(DType::b8, true), operand(dtype, false), operand(dtype, false)},
                 dense(dtype, sizes));
    }
    if (dtype == DType::b8) {
      const DType compared = pick({DType::f32, DType::i32, DType::f16});
      return add(pick({"lt", "ge", "eq"}), {operand(compared, true), operand(compared, false)}, dense(dtype, sizes));
    }
    if (chance(25)) return add("neg", {operand(dtype, true)}, dense(dtype, sizes));
    const Arg second = chance(30) ? Arg{int64_t{2}} : operand(dtype, false);
    return add(pick({"add", "sub", "mul", "maximum"}), {operand(dtype, true), second}, dense(dtype, sizes));
  }

  /// A view that has the sizes: of a transposed, longer or reshaped value.
  ValueId view(const Sizes& sizes, DType dtype, size_t depth) {
    const size_t kind = below(3);
    if (kind == 0 && sizes.size() >= 2) return transposed(sizes, dtype, depth);
    if (kind == 1 && !sizes.empty()) return sliced(sizes, dtype, depth);
    return reshaped(sizes, dtype, depth);
  }

  /// Two or three values side by side, of which one may be a number.
  ValueId join(const Sizes& sizes, DType dtype, size_t depth) {
    const auto dim = static_cast<uint32_t>(below(sizes.size()));
    std::vector<Arg> parts;
    int64_t left = sizes[dim];
    while (left > 0) {
      Sizes part = sizes;
      const bool last = parts.size() == 2 || left == 1;
      part[dim] = last ? left : 1 + static_cast<int64_t>(below(static_cast<size_t>(left)));
      left -= part[dim];
      const bool number = chance(20);
      parts.push_back({number ? add("cast", {Arg{int64_t{1}}}, dense(dtype, part)) : value(part, dtype, depth - 1)});
    }
    return graph_.add1(ir::Join{dim}, std::move(parts), dense(dtype, sizes));
  }

  ValueId look(ValueId base, const Sizes& sizes, std::vector<ir::Dim> strides, int64_t offset) {
    Type type{.dtype = graph_.type(base).dtype,
              .sizes = dims(sizes),
              .strides = std::move(strides),
              .device = graph_.type(base).device};
    return graph_.add1(ir::View{.offset = offset}, {{base}}, std::move(type));
  }

  ValueId transposed(const Sizes& sizes, DType dtype, size_t depth) {
    const size_t a = below(sizes.size());
    const size_t b = below(sizes.size());
    Sizes from = sizes;
    std::swap(from[a], from[b]);
    const ValueId base = value(from, dtype, depth - 1);
    auto strides = graph_.type(base).strides;
    std::swap(strides[a], strides[b]);
    return look(base, sizes, std::move(strides), 0);
  }

  ValueId sliced(const Sizes& sizes, DType dtype, size_t depth) {
    const size_t dim = below(sizes.size());
    Sizes from = sizes;
    from[dim] += pick<int64_t>({1, 2, 4, 8});
    const auto start = static_cast<int64_t>(below(static_cast<size_t>(from[dim] - sizes[dim] + 1)));
    const ValueId base = value(from, dtype, depth - 1);
    const auto strides = graph_.type(base).strides;
    return look(base, sizes, strides, start * strides[dim].value());
  }

  ValueId reshaped(const Sizes& sizes, DType dtype, size_t depth) {
    Sizes from = sizes;
    if (from.size() >= 2) {
      const size_t dim = below(from.size() - 1);
      from[dim + 1] *= from[dim];
      from.erase(from.begin() + static_cast<ptrdiff_t>(dim));
      if (chance(50) && from[dim] % 2 == 0) {
        from[dim] /= 2;
        from.insert(from.begin() + static_cast<ptrdiff_t>(dim) + 1, 2);
      }
    } else {
      from.insert(from.begin(), 1);
    }
    const ValueId base = value(from, dtype, depth - 1);
    if (!graph_.type(base).is_contiguous())
      return add("add", {{cast(leaf(sizes, dtype), dtype)}, {int64_t{1}}}, dense(dtype, sizes));
    return look(base, sizes, ir::contiguous_strides(dims(sizes)), 0);
  }

  std::mt19937_64 random_;
  Graph graph_;
  std::vector<ValueId> inputs_;
};

/// Copies what the outputs need into a new graph. Values in `cut` become inputs.
class Copy {
 public:
  Copy(const Graph& from, std::vector<ValueId> outputs, const std::set<uint32_t>& cut) : from_(from), cut_(cut) {
    to_.name = from.name;
    to_.device = from.device;
    for (const ValueId output : outputs) find_live(output);
    for (const bool inputs : {true, false}) {
      for (const ir::NodeId id : from.order()) {
        const ValueId result = from.node(id).results[0];
        if (live_.contains(result.index) && is_input(result) == inputs) copy(result);
      }
    }
    for (const ValueId output : outputs) to_.outputs.push_back(known_.at(output.index));
  }
  Graph take() { return std::move(to_); }

 private:
  bool is_input(ValueId value) const {
    return cut_.contains(value.index) || from_.producer(value).as<ir::Input>() != nullptr;
  }

  void find_live(ValueId value) {
    if (!live_.insert(value.index).second || is_input(value)) return;
    for (const Arg& arg : from_.producer(value).args) ir::for_each_value(arg, [&](ValueId v) { find_live(v); });
  }

  void copy(ValueId value) {
    const Type& type = from_.type(value);
    if (is_input(value)) {
      const auto index = static_cast<uint32_t>(known_.size());
      known_[value.index] = to_.add1(ir::Input{.index = index}, {}, type);
      return;
    }
    auto args = from_.producer(value).args;
    for (Arg& arg : args) ir::for_each_value(arg, [&](ValueId& v) { v = known_.at(v.index); });
    known_[value.index] = to_.add1(from_.producer(value).payload, std::move(args), type);
  }

  const Graph& from_;
  const std::set<uint32_t>& cut_;
  Graph to_;
  std::set<uint32_t> live_;
  std::unordered_map<uint32_t, ValueId> known_;
};

/// Graphs one step smaller.
std::vector<Graph> smaller(const Graph& graph) {
  std::vector<Graph> all;
  const std::set<uint32_t> none;
  if (graph.outputs.size() > 1) {
    for (const ValueId output : graph.outputs) all.push_back(Copy(graph, {output}, none).take());
  }
  for (const ir::NodeId id : graph.order()) {
    const ir::Node& node = graph.node(id);
    if (node.as<ir::Input>() != nullptr) continue;
    const bool is_output = std::ranges::find(graph.outputs, node.results[0]) != graph.outputs.end();
    if (!is_output) {
      all.push_back(Copy(graph, graph.outputs, {node.results[0].index}).take());
      if (node.as<ir::Primitive>() != nullptr) all.push_back(Copy(graph, {node.results[0]}, none).take());
    }
  }
  return all;
}

}  // namespace

Graph random_body(uint64_t seed) {
  const Graph graph = Drawing(seed).run();
  return Copy(graph, graph.outputs, {}).take();
}

Graph shrink(Graph graph, const std::function<bool(const Graph&)>& fails) {
  for (bool shrunk = true; shrunk;) {
    shrunk = false;
    for (Graph& candidate : smaller(graph)) {
      if (candidate.order().size() > graph.order().size() || !fails(candidate)) continue;
      if (candidate.order().size() == graph.order().size() && candidate.outputs.size() == graph.outputs.size())
        continue;
      graph = std::move(candidate);
      shrunk = true;
      break;
    }
  }
  return graph;
}

}  // namespace sinter::test
