#include "frontend/shape_family.h"

#include <algorithm>
#include <map>

#include "frontend/difference.h"
#include "frontend/view_check.h"

namespace sinter::frontend {
namespace {

constexpr size_t max_samples = 8;

/// The captures that are compared when a number is solved; a number that is no integer follows from nothing.
std::optional<std::string> difference_beyond_integers(const Trace& first, const Trace& second) {
  if (auto found = gradient_difference(first.gradients, second.gradients)) return found;
  for (const GradientSlot& slot : second.gradients) {
    // It is as large as the argument, in the slot too, which has no expressions.
    if (slot.input && slot.read) return "the gradient of " + slot.name + " is used";
  }
  const auto comparison = compare(first, second);
  if (comparison.other) return comparison.other;
  for (const auto& number : comparison.numbers) {
    if (std::holds_alternative<double>(number.first)) return describe(number, first);
  }
  return std::nullopt;
}

/// The sizes of all inputs, one after the other, by the order of the inputs.
std::map<uint32_t, std::vector<int64_t>> input_sizes(const ir::Graph& graph) {
  std::map<uint32_t, std::vector<int64_t>> sizes;
  for (const ir::NodeId id : graph.order()) {
    const auto* input = graph.node(id).as<ir::Input>();
    if (input != nullptr) sizes[input->index] = graph.type(graph.node(id).results[0]).static_sizes();
  }
  return sizes;
}

/// True when a size that differs is 0 or 1 in one of the captures.
bool differs_below_two(const Trace& first, const Trace& second) {
  const auto one = input_sizes(first.graph);
  const auto other = input_sizes(second.graph);
  for (const auto& [input, sizes] : one) {
    const auto found = other.find(input);
    if (found == other.end() || found->second.size() != sizes.size()) continue;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] != found->second[d] && std::min(sizes[d], found->second[d]) < 2) return true;
    }
  }
  return false;
}

Trace with_graph(const Trace& trace, ir::Graph graph) {
  Trace other = trace;
  other.graph = std::move(graph);
  other.seconds = 0;
  return other;
}

/// True when the arguments have the types that the graph gives its inputs. Gradients, which come after them, are as
/// large as the leaves they belong to: their guards look at them.
bool inputs_match(const ir::Graph& graph, const detail::Flat& arguments) {
  for (const ir::NodeId id : graph.order()) {
    const auto* input = graph.node(id).as<ir::Input>();
    if (input == nullptr) continue;
    const ir::Type& type = graph.type(graph.node(id).results[0]);
    if (input->index >= arguments.tensors.size()) continue;
    const at::Tensor& tensor = *arguments.tensors[input->index];
    if (tensor.sizes() != c10::IntArrayRef(type.static_sizes())) return false;
    if (tensor.strides() != c10::IntArrayRef(type.static_strides())) return false;
  }
  return true;
}

/// Lowers what one capture saw of addresses to what another one of the same program saw.
ir::Graph as_aligned_as_both(ir::Graph graph, const ir::Graph& other) {
  for (size_t i = 0; i < graph.order().size(); ++i) {
    const auto& results = graph.node(graph.order()[i]).results;
    const auto& others = other.node(other.order().at(i)).results;
    for (size_t r = 0; r < results.size(); ++r) {
      int64_t& alignment = graph.value(results[r]).alignment;
      alignment = std::min(alignment, other.value(others.at(r)).alignment);
    }
  }
  return graph;
}

std::vector<int64_t> sample_sizes(const ir::SymbolicGraph& graph, size_t sample) {
  std::vector<int64_t> sizes;
  for (const ir::Symbol& symbol : graph.symbols()) sizes.push_back(symbol.samples[sample]);
  return sizes;
}

}  // namespace

void Coverage::add(int64_t size) { seen_.add(size); }

void Coverage::add_range(int64_t min, int64_t max) { ranges_.emplace_back(min, max); }

bool Coverage::contains(int64_t size) const {
  for (const auto& [min, max] : ranges_) {
    if (min <= size && size <= max) return true;
  }
  return seen_.contains(size);
}

ShapeFamily::ShapeFamily(Trace trace, ir::SymbolicGraph graph, std::vector<ir::Numbers> samples)
    : trace_(std::move(trace)), graph_(std::move(graph)), samples_(std::move(samples)) {
  cover_samples();
}

std::variant<std::shared_ptr<ShapeFamily>, ShapeFamily::Refusal> ShapeFamily::make(const Trace& first,
                                                                                   const Trace& second) {
  const bool special = differs_below_two(first, second);
  if (auto found = difference_beyond_integers(first, second)) return Refusal{std::move(*found), !special};
  std::vector<ir::Numbers> samples = {ir::numbers_of(first.graph), ir::numbers_of(second.graph)};
  auto solved = ir::SymbolicGraph::solve(as_aligned_as_both(second.graph, first.graph), samples);
  if (const auto* unsolved = std::get_if<ir::Unsolved>(&solved)) return Refusal{unsolved->reason, !special};
  auto& graph = std::get<ir::SymbolicGraph>(solved);
  return std::shared_ptr<ShapeFamily>(new ShapeFamily(second, std::move(graph), std::move(samples)));
}

void ShapeFamily::cover_samples() {
  coverage_.assign(graph_.symbols().size(), {});
  remainders_.clear();
  for (size_t sample = 0; sample < samples_.size(); ++sample) cover(sample_sizes(graph_, sample));
  for (size_t s = 0; s < coverage_.size(); ++s) {
    for (const SizePromise& promise : promises_) {
      const auto& dims = graph_.symbols()[s].dims;
      const bool promised = std::ranges::find(dims, ir::InputDim{promise.input, promise.dim}) != dims.end();
      if (promised) coverage_[s].add_range(promise.min, promise.max);
    }
  }
}

void ShapeFamily::set_promises(std::vector<SizePromise> promises) {
  promises_ = std::move(promises);
  cover_samples();
}

void ShapeFamily::cover(std::span<const int64_t> sizes) {
  for (size_t i = 0; i < sizes.size(); ++i) coverage_[i].add(sizes[i]);
  const auto remainders = graph_.remainders(sizes);
  remainders_.resize(remainders.size());
  for (size_t i = 0; i < remainders.size(); ++i) remainders_[i].insert(remainders[i]);
}

bool ShapeFamily::covers(std::span<const int64_t> sizes) const {
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!coverage_[i].contains(sizes[i])) return false;
  }
  const auto remainders = graph_.remainders(sizes);
  for (size_t i = 0; i < remainders.size(); ++i) {
    if (!remainders_[i].contains(remainders[i])) return false;
  }
  return true;
}

std::optional<std::vector<int64_t>> ShapeFamily::bind(const detail::Flat& arguments) const {
  const auto is_argument = [&](const ir::InputDim& dim) { return dim.input < arguments.tensors.size(); };
  for (const ir::Symbol& symbol : graph_.symbols()) {
    if (!std::ranges::all_of(symbol.dims, is_argument)) return std::nullopt;
  }
  return graph_.bind([&](const ir::InputDim& dim) { return arguments.tensors[dim.input]->size(dim.dim); });
}

std::optional<Trace> ShapeFamily::instantiate(std::span<const int64_t> sizes, const detail::Flat& arguments) const {
  auto graph = graph_.instantiate(sizes);
  if (!graph || !inputs_match(*graph, arguments)) return std::nullopt;
  if (!views_are_as_libtorch_makes_them(*graph, trace_.opaques)) return std::nullopt;
  return with_graph(trace_, std::move(*graph));
}

ShapeFamily::Outcome ShapeFamily::add(const Trace& captured, const detail::Flat& arguments) {
  if (const auto sizes = bind(arguments)) {
    const auto expected = instantiate(*sizes, arguments);
    if (expected && !difference(*expected, captured) && !gradient_difference(expected->gradients, captured.gradients)) {
      cover(*sizes);
      return {Joined::as_expected, {}};
    }
  }
  return solve_again(captured);
}

ShapeFamily::Outcome ShapeFamily::solve_again(const Trace& captured) {
  const bool special = differs_below_two(trace_, captured);
  if (auto found = difference_beyond_integers(trace_, captured)) {
    return {Joined::refused, {std::move(*found), !special}};
  }
  auto samples = samples_;
  if (samples.size() == max_samples) samples.erase(samples.begin());
  samples.push_back(ir::numbers_of(captured.graph));
  auto solved = ir::SymbolicGraph::solve(as_aligned_as_both(captured.graph, trace_.graph), samples);
  if (const auto* unsolved = std::get_if<ir::Unsolved>(&solved)) {
    return {Joined::refused, {unsolved->reason, !special}};
  }
  graph_ = std::move(std::get<ir::SymbolicGraph>(solved));
  trace_ = captured;
  samples_ = std::move(samples);
  cover_samples();
  return {Joined::solved_again, {}};
}

std::string ShapeFamily::signature() const {
  std::string text;
  for (const ir::NodeId id : trace_.graph.order()) {
    const auto* input = trace_.graph.node(id).as<ir::Input>();
    if (input != nullptr) text += (text.empty() ? "" : ", ") + graph_.signature(input->index);
  }
  return text;
}

std::vector<std::string> ShapeFamily::describe() const {
  std::vector<std::string> lines;
  for (size_t s = 0; s < graph_.symbols().size(); ++s) {
    std::string line = "s" + std::to_string(s) + ":";
    for (const ir::InputDim& dim : graph_.symbols()[s].dims) {
      line += (line.back() == ':' ? " size[" : ", size[") + std::to_string(dim.dim) + "] of input " +
              std::to_string(dim.input);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace sinter::frontend
