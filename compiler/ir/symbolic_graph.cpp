#include "compiler/ir/symbolic_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "compiler/ir/size_rules.h"

namespace sinter::ir {
namespace {

using Samples = SizeSolver::Samples;
using Kind = NumberPlace::Kind;

bool all_equal(const Samples& samples) {
  return std::ranges::all_of(samples, [&](int64_t sample) { return sample == samples[0]; });
}

Samples samples_of(const std::vector<Numbers>& all, size_t number) {
  Samples samples;
  for (const Numbers& numbers : all) samples.push_back(numbers[number]);
  return samples;
}

/// The sizes of inputs that differ between the samples, equal ones together.
std::vector<Symbol> find_symbols(const Graph& graph, const std::vector<Numbers>& all) {
  std::vector<Symbol> symbols;
  size_t number = 0;
  for (const NodeId id : graph.order()) {
    const auto* input = graph.node(id).as<Input>();
    visit_numbers(graph, id, [&](const NumberPlace& place, const auto&) {
      const Samples samples = samples_of(all, number++);
      if (input == nullptr || place.kind != Kind::size || all_equal(samples)) return;
      auto known = std::ranges::find(symbols, samples, &Symbol::samples);
      if (known == symbols.end()) known = symbols.insert(known, {{}, samples});
      known->dims.push_back({input->index, place.index});
    });
  }
  return symbols;
}

void set(int64_t& number, int64_t value) { number = value; }
void set(Dim& dim, int64_t value) { dim = value; }

}  // namespace

/// Solves the numbers of one graph in the order of its nodes, each with what its operands' types hold at hand.
class SymbolicSolver {
 public:
  SymbolicSolver(const Graph& graph, const std::vector<Numbers>& all)
      : graph_(graph), all_(all), symbols_(find_symbols(graph, all)), types_(graph.value_count()) {}

  std::variant<SymbolicGraph, Unsolved> run() {
    if (symbols_.empty()) return Unsolved{"no size of an input differs"};
    std::vector<Samples> symbol_samples;
    for (const Symbol& symbol : symbols_) {
      if (std::ranges::any_of(symbol.samples, [](int64_t size) { return size < 2; })) {
        return Unsolved{
            fmt::format("size[{}] of input {} is 0 or 1 in one call", symbol.dims[0].dim, symbol.dims[0].input)};
      }
      symbol_samples.push_back(symbol.samples);
    }
    SizeSolver solver(result_.table_, symbol_samples);
    for (const NodeId id : graph_.order()) {
      if (!solve_node(id, solver)) return Unsolved{std::move(reason_)};
    }
    result_.graph_ = graph_;
    result_.symbols_ = std::move(symbols_);
    result_.roundings_ = solver.roundings();
    return std::move(result_);
  }

 private:
  using Terms = std::vector<SizeId>;

  /// What the types of the operands are made of: their sizes first.
  Terms operand_terms(const Node& node) const {
    Terms terms;
    for (const Arg& arg : node.args) {
      for_each_value(arg, [&](const ValueId& value) {
        terms.insert(terms.end(), types_[value.index].begin(), types_[value.index].end());
      });
    }
    return terms;
  }

  bool solve_node(NodeId id, SizeSolver& solver) {
    const Node& node = graph_.node(id);
    Terms nearby = operand_terms(node);
    bool solved = true;
    bool arguments_differ = false;
    visit_numbers(graph_, id, [&](const NumberPlace& place, const auto&) {
      const size_t number = next_number_++;
      if (!solved) return;
      const Samples samples = samples_of(all_, number);
      if (all_equal(samples)) return;
      arguments_differ |= place.kind == Kind::argument;
      auto term = arguments_differ ? std::nullopt : by_rule(node, place, samples, solver);
      if (!term) term = solver.solve(samples, nearby);
      if (!term) {
        solved = false;
        reason_ =
            fmt::format("{} was {} and follows from no size", describe(graph_, id, place), fmt::join(samples, ", "));
        return;
      }
      result_.varying_.push_back({static_cast<uint32_t>(number), *term});
      nearby.insert(nearby.begin(), *term);
      if (place.kind == Kind::argument) return;
      types_[node.results[place.position].index].push_back(*term);
      sizes_[{node.results[place.position].index, place.index, place.kind}] = *term;
    });
    return solved;
  }

  std::optional<SizeId> by_rule(const Node& node, const NumberPlace& place, const Samples& wanted, SizeSolver& solver) {
    if (place.kind != Kind::size || place.position != 0) return std::nullopt;
    const auto size_of = [&](ValueId value, uint32_t dim) {
      const auto known = sizes_.find({value.index, dim, Kind::size});
      return known != sizes_.end() ? known->second : result_.table_.constant(graph_.type(value).sizes[dim].value());
    };
    const auto term = size_by_rule(graph_, node, place.index, result_.table_, size_of);
    return term && solver.samples(*term) == wanted ? term : std::nullopt;
  }

  const Graph& graph_;
  const std::vector<Numbers>& all_;
  std::vector<Symbol> symbols_;
  std::vector<Terms> types_;  ///< by value: the terms its type is made of
  std::map<std::tuple<uint32_t, uint32_t, Kind>, SizeId> sizes_;
  size_t next_number_ = 0;
  std::string reason_;
  SymbolicGraph result_;
};

std::variant<SymbolicGraph, Unsolved> SymbolicGraph::solve(const Graph& first, const std::vector<Numbers>& samples) {
  return SymbolicSolver(first, samples).run();
}

std::optional<Graph> SymbolicGraph::instantiate(std::span<const int64_t> values) const {
  const auto terms = table_.evaluate(values);
  if (!terms) return std::nullopt;
  Graph graph = graph_;
  bool fits = true;
  uint32_t number = 0;
  auto next = varying_.begin();
  for (const NodeId id : graph.order()) {
    visit_numbers(graph, id, [&](const NumberPlace& place, auto& slot) {
      if (next == varying_.end() || next->number != number++) return;
      const int64_t value = (*terms)[next->term.index];
      ++next;
      const bool in_type = place.kind == Kind::size || place.kind == Kind::stride;
      if (in_type && value < 2) fits = false;
      set(slot, value);
    });
  }
  return fits ? std::optional(std::move(graph)) : std::nullopt;
}

std::vector<int64_t> SymbolicGraph::remainders(std::span<const int64_t> values) const {
  std::vector<int64_t> remainders;
  const auto terms = roundings_.empty() ? std::nullopt : table_.evaluate(values);
  if (!terms) return remainders;
  for (const auto& [dividend, divisor] : roundings_) {
    const int64_t remainder = (*terms)[dividend.index] % divisor;
    remainders.push_back(remainder < 0 ? remainder + divisor : remainder);
  }
  return remainders;
}

std::vector<std::string> SymbolicGraph::describe() const {
  std::vector<std::string> lines;
  uint32_t number = 0;
  auto next = varying_.begin();
  for (const NodeId id : graph_.order()) {
    visit_numbers(graph_, id, [&](const NumberPlace& place, const auto&) {
      if (next == varying_.end() || next->number != number++) return;
      lines.push_back(ir::describe(graph_, id, place) + ": " + table_.text(next->term));
      ++next;
    });
  }
  return lines;
}

std::string SymbolicGraph::signature(uint32_t input) const {
  for (const NodeId id : graph_.order()) {
    const auto* node = graph_.node(id).as<Input>();
    if (node == nullptr || node->index != input) continue;
    const Type& type = graph_.type(graph_.node(id).results[0]);
    std::string text;
    for (uint32_t d = 0; d < type.rank(); ++d) {
      std::string size = to_string(type.sizes[d]);
      for (size_t s = 0; s < symbols_.size(); ++s) {
        if (std::ranges::find(symbols_[s].dims, InputDim{input, d}) != symbols_[s].dims.end()) {
          size = fmt::format("s{}", s);
        }
      }
      text += (d == 0 ? "" : ",") + size;
    }
    return fmt::format("{}[{}]", name(type.dtype), text);
  }
  return {};
}

}  // namespace sinter::ir
