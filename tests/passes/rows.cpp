#include "rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "compiler/ir/parse.h"
#include "compiler/ir/print.h"
#include "compiler/passes/pipeline.h"

namespace sinter::passes {

using namespace ir;

std::vector<std::vector<size_t>> rows_of(const std::vector<int64_t>& sizes, const std::vector<int64_t>& dims) {
  std::vector<std::vector<size_t>> rows;
  size_t place = 0;
  for_each_point(sizes, [&](std::span<const int64_t> point) {
    size_t row = 0;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (std::ranges::count(dims, static_cast<int64_t>(d)) == 0)
        row = row * static_cast<size_t>(sizes[d]) + static_cast<size_t>(point[d]);
    }
    rows.resize(std::max(rows.size(), row + 1));
    rows[row].push_back(place++);
  });
  return rows;
}

Row map_rows(const Row& elements, const std::vector<std::vector<size_t>>& rows, const Mapped& map) {
  Row result(elements.size());
  for (const auto& places : rows) {
    Row row;
    for (const size_t place : places) row.push_back(elements[place]);
    const Row mapped = map(row);
    for (size_t i = 0; i < places.size(); ++i) result[places[i]] = mapped[i];
  }
  return result;
}

Row reduce_rows(const Row& elements, const std::vector<std::vector<size_t>>& rows, const Reduced& join) {
  Row result;
  for (const auto& places : rows) {
    Row row;
    for (const size_t place : places) row.push_back(elements[place]);
    result.push_back(join(row));
  }
  return result;
}

double sum_of(const Row& row) {
  double sum = 0;
  for (const double x : row) sum += x;
  return sum;
}

double mean_of(const Row& row) { return sum_of(row) / static_cast<double>(row.size()); }

double variance_of(const Row& row) {
  const double mean = mean_of(row);
  Row squares;
  for (const double x : row) squares.push_back((x - mean) * (x - mean));
  return mean_of(squares);
}

double largest_of(const Row& row) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const double x : row) largest = std::isnan(x) || x > largest ? x : largest;
  const bool has_nan = std::ranges::any_of(row, [](double x) { return std::isnan(x); });
  return has_nan ? std::numeric_limits<double>::quiet_NaN() : largest;
}

Row softmax_of(const Row& row) {
  const double largest = largest_of(row);
  Row result;
  for (const double x : row) result.push_back(std::exp(x - largest));
  const double sum = sum_of(result);
  for (double& x : result) x /= sum;
  return result;
}

HostTensor drawn(std::string_view text, uint64_t seed) {
  const Type type = parse_type(text, {Device::Kind::cuda, 0});
  std::mt19937_64 random(seed);
  std::vector<RefValue> elements;
  for (int64_t i = 0; i < type.numel(); ++i) {
    const auto draw = static_cast<int64_t>(random() % 4001);
    if (is_float(type.dtype)) {
      elements.emplace_back(static_cast<double>(draw - 2000) / 1000);
    } else {
      elements.emplace_back(type.dtype == DType::b8 ? draw % 2 : draw % 7 - 3);
    }
  }
  return tensor_of(type, elements);
}

HostTensor drawn_with_specials(std::string_view text, uint64_t seed) {
  HostTensor tensor = drawn(text, seed);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<RefValue> elements = elements_of(tensor);
  const auto row = static_cast<size_t>(tensor.type.sizes.back().value());
  elements[0] = infinity;
  elements[row] = -infinity;
  elements[2 * row] = std::numeric_limits<double>::quiet_NaN();
  elements[3 * row] = infinity;
  elements[3 * row + 1] = -infinity;
  for (size_t i = 4 * row; i < 5 * row; ++i) elements[i] = -infinity;
  for (size_t i = 5 * row; i < 6 * row; ++i) elements[i] = 0.0;
  return tensor_of(tensor.type, elements);
}

ir::HostTensor integers(std::string_view type, const std::vector<int64_t>& numbers) {
  ir::HostTensor made = drawn(type, 1);
  size_t next = 0;
  ir::for_each_point(made.type.static_sizes(),
                     [&](std::span<const int64_t> point) { made.set(point, numbers.at(next++)); });
  return made;
}

Row matrix(size_t height, size_t width, const std::function<double(size_t, size_t)>& element) {
  Row elements;
  for (size_t i = 0; i < height; ++i) {
    for (size_t j = 0; j < width; ++j) elements.push_back(element(i, j));
  }
  return elements;
}

Row numbers_of(const HostTensor& tensor) {
  Row numbers;
  for (const RefValue& value : elements_of(tensor))
    numbers.push_back(std::visit([](auto number) { return static_cast<double>(number); }, value));
  return numbers;
}

namespace {

/// What is left of a graph after a pass that leaves no call, interpreted.
std::vector<Row> interpreted_after(std::string_view pass, std::string_view text,
                                   const std::vector<HostTensor>& inputs) {
  const Graph given = parse(text);
  Graph graph = given;
  PassContext context;
  context.device.backend = graph.device.kind == Device::Kind::cuda ? Backend::cuda : Backend::llvm;
  run_pass(pass, graph, context);
  for (size_t i = 0; i < given.outputs.size(); ++i) {
    EXPECT_EQ(to_string(graph.type(graph.outputs[i]), graph.device),
              to_string(given.type(given.outputs[i]), graph.device));
  }
  for (const NodeId id : graph.order()) {
    if (graph.node(id).as<Call>() == nullptr) continue;
    ADD_FAILURE() << "a call is left\n" << print(graph);
    return {};
  }
  std::vector<Row> outputs;
  for (const HostTensor& output : interpret(graph, {inputs, {}, {}})) outputs.push_back(numbers_of(output));
  return outputs;
}

}  // namespace

std::vector<Row> decomposed(std::string_view text, const std::vector<HostTensor>& inputs) {
  return interpreted_after("decompose", text, inputs);
}

std::vector<Row> expanded(std::string_view text, const std::vector<HostTensor>& inputs) {
  return interpreted_after("expand_windows", text, inputs);
}

std::vector<Row> with_pool_gradients(std::string_view text, const std::vector<HostTensor>& inputs) {
  return interpreted_after("expand_pool_gradients", text, inputs);
}

std::vector<Row> upsampled(std::string_view text, const std::vector<HostTensor>& inputs) {
  return interpreted_after("expand_upsampling", text, inputs);
}

std::vector<Row> summed(std::string_view graph, const std::vector<HostTensor>& inputs) {
  return interpreted_after("sum_products", graph, inputs);
}

void expect_close(const Row& found, const Row& wanted, double tolerance) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(found[i]) && std::isnan(wanted[i])) continue;
    if (found[i] == wanted[i]) continue;
    const double scale = std::max(1.0, std::abs(wanted[i]));
    ASSERT_LE(std::abs(found[i] - wanted[i]), tolerance * scale) << "element " << i;
  }
}

double tolerance_of(std::string_view dtype) {
  if (dtype == "f64") return 1e-12;
  if (dtype == "f32") return 2e-6;
  if (dtype == "f16") return 1e-3;
  return dtype == "bf16" ? 8e-3 : 0;
}

Row gradient_of(const std::function<Row(const Row&)>& f, const Row& x, const Row& weights) {
  constexpr double step = 1e-5;
  const auto total = [&](const Row& at) {
    const Row values = f(at);
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i) sum += weights[i] * values[i];
    return sum;
  };
  Row gradient;
  for (size_t i = 0; i < x.size(); ++i) {
    Row above = x;
    Row below = x;
    above[i] += step;
    below[i] -= step;
    gradient.push_back((total(above) - total(below)) / (2 * step));
  }
  return gradient;
}

}  // namespace sinter::passes
