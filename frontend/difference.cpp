#include "frontend/difference.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <cstring>

#include "compiler/ir/print.h"
#include "frontend/host_call.h"
#include "frontend/ledger.h"

namespace sinter::frontend {
namespace {

using Difference = std::optional<std::string>;
using Part = NumberPlace::Part;

std::string place_of(const Trace& trace, const ir::Node& node) {
  if (!node.scope.valid()) return {};
  const ir::Scope& scope = trace.graph.scope(node.scope);
  return " at " + ir::place_text(scope.module, scope.source);
}

/// Compares two traces node by node; values correspond by their position.
class Comparison {
 public:
  Comparison(const Trace& first, const Trace& second) : first_(first), second_(second) {}

  TraceComparison run() {
    auto other = all_nodes();
    return {std::move(other), std::move(numbers_)};
  }

 private:
  Difference all_nodes() {
    const auto& order = first_.graph.order();
    const auto& other_order = second_.graph.order();
    for (size_t i = 0; i < std::min(order.size(), other_order.size()); ++i) {
      node_ = order[i];
      if (auto found = nodes(first_.graph.node(order[i]), second_.graph.node(other_order[i]))) return found;
    }
    if (order.size() != other_order.size()) return more_nodes();
    return outputs();
  }

  Difference more_nodes() const {
    const bool first_longer = first_.graph.order().size() > second_.graph.order().size();
    const Trace& longer = first_longer ? first_ : second_;
    const Trace& shorter = first_longer ? second_ : first_;
    const ir::Node& extra = longer.graph.node(longer.graph.order()[shorter.graph.order().size()]);
    return fmt::format("{}{} was called in the {} run only", ir::op_name(extra), place_of(longer, extra),
                       first_longer ? "first" : "second");
  }

  Difference outputs() {
    const auto& a = first_.graph.outputs;
    const auto& b = second_.graph.outputs;
    if (a.size() != b.size()) return fmt::format("results: {}, then {}", a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      if (!same_value(a[i], b[i])) return fmt::format("result {}: another value is returned", i);
      if (!same_identity(i)) return fmt::format("result {}: another tensor object over the same memory is returned", i);
    }
    return std::nullopt;
  }

  bool same_identity(size_t output) const {
    const ir::ValueId a = first_.returned_as_is[output];
    const ir::ValueId b = second_.returned_as_is[output];
    return first_.first_twin[output] == second_.first_twin[output] && a.valid() == b.valid() &&
           (!a.valid() || same_value(a, b));
  }

  Difference nodes(const ir::Node& a, const ir::Node& b) {
    if (auto found = leaves(a, b)) return found;
    if (ir::op_name(a) != ir::op_name(b)) {
      return fmt::format("{}{}, then {}{}", ir::op_name(a), place_of(first_, a), ir::op_name(b), place_of(second_, b));
    }
    if (a.args.size() != b.args.size())
      return fmt::format("{}{}: other arguments", ir::op_name(a), place_of(first_, a));
    for (uint32_t i = 0; i < a.args.size(); ++i) {
      if (same(a.args[i], b.args[i], {i})) continue;
      return fmt::format("{}{}: argument {} was {}, is {}", ir::op_name(a), place_of(first_, a), i,
                         show(first_, a.args[i]), show(second_, b.args[i]));
    }
    return results(a, b);
  }

  Difference leaves(const ir::Node& a, const ir::Node& b) const {
    const auto* state = a.as<ir::State>();
    const auto* other_state = b.as<ir::State>();
    if (state && other_state &&
        first_.states[state->index].tensor._unsafe_get_target() !=
            second_.states[other_state->index].tensor._unsafe_get_target()) {
      return fmt::format("state {} is another tensor", state->name);
    }
    const auto* content = a.as<ir::Constant>();
    const auto* other_content = b.as<ir::Constant>();
    if (content && other_content) {
      return contents(first_.contents[content->index].value, second_.contents[other_content->index].value,
                      content->index);
    }
    return std::nullopt;
  }

  static Difference contents(const at::Tensor& a, const at::Tensor& b, uint32_t index) {
    const Layout layout = Layout::of(a);
    Layout other = Layout::of(b);
    other.storage = layout.storage;
    if (layout != other) return fmt::format("content {}: its type changed", index);
    const int64_t bytes = layout.end_byte() - layout.begin_byte();
    if (bytes == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), static_cast<size_t>(bytes)) == 0) {
      return std::nullopt;
    }
    return fmt::format("content {}: a tensor filled outside LibTorch's operators changed its values", index);
  }

  Difference results(const ir::Node& a, const ir::Node& b) {
    if (a.results.size() != b.results.size()) {
      return fmt::format("{}{}: {} results, then {}", ir::op_name(a), place_of(first_, a), a.results.size(),
                         b.results.size());
    }
    for (uint32_t i = 0; i < a.results.size(); ++i) {
      const ir::Value& x = first_.graph.value(a.results[i]);
      const ir::Value& y = second_.graph.value(b.results[i]);
      if (!same_type(x.type, y.type, i) || !same_alias(x.alias, y.alias, i)) {
        return fmt::format("{}{}: result {} was {}, is {}", ir::op_name(a), place_of(first_, a), i,
                           to_string(x.type, first_.graph.device), to_string(y.type, second_.graph.device));
      }
      match(a.results[i], b.results[i]);
    }
    return std::nullopt;
  }

  bool same_type(const ir::Type& a, const ir::Type& b, uint32_t result) {
    if (a.dtype != b.dtype || a.device != b.device || a.rank() != b.rank()) return false;
    for (uint32_t dim = 0; dim < a.rank(); ++dim) {
      note(Part::size, {result, dim}, a.sizes[dim].value(), b.sizes[dim].value());
      note(Part::stride, {result, dim}, a.strides[dim].value(), b.strides[dim].value());
    }
    return true;
  }

  bool same_alias(const std::optional<ir::Alias>& a, const std::optional<ir::Alias>& b, uint32_t result) {
    if (a.has_value() != b.has_value()) return false;
    if (!a) return true;
    note(Part::alias_offset, {result}, a->offset, b->offset);
    return same_value(a->base, b->base);
  }

  template <class Number>
  void note(Part part, std::vector<uint32_t> path, Number a, Number b) {
    if (same_number(a, b)) return;
    numbers_.push_back({{node_, part, std::move(path)}, a, b});
  }

  void match(ir::ValueId a, ir::ValueId b) {
    if (matches_.size() <= a.index) matches_.resize(a.index + 1);
    matches_[a.index] = b;
  }
  bool same_value(ir::ValueId a, ir::ValueId b) const { return a.index < matches_.size() && matches_[a.index] == b; }

  /// True also where numbers differ: those are noted.
  bool same(const ir::Arg& a, const ir::Arg& b, std::vector<uint32_t> path) {
    if (a.data.index() != b.data.index()) return false;
    if (const ir::ValueId* value = a.value()) return same_value(*value, *b.value());
    if (const auto* real = std::get_if<double>(&a.data)) {
      note(Part::argument, std::move(path), *real, std::get<double>(b.data));
      return true;
    }
    if (const auto* integer = std::get_if<int64_t>(&a.data)) {
      note(Part::argument, std::move(path), *integer, std::get<int64_t>(b.data));
      return true;
    }
    if (const ir::ArgList* list = a.list()) return same_list(*list, *b.list(), path);
    if (const auto* opaque = std::get_if<ir::Opaque>(&a.data)) {
      return same_opaque(first_.opaques[opaque->index], second_.opaques[std::get<ir::Opaque>(b.data).index]);
    }
    return a == b;
  }

  bool same_list(const ir::ArgList& a, const ir::ArgList& b, const std::vector<uint32_t>& path) {
    if (a.size() != b.size()) return false;
    for (uint32_t i = 0; i < a.size(); ++i) {
      auto element = path;
      element.push_back(i);
      if (!same(a[i], b[i], std::move(element))) return false;
    }
    return true;
  }

  std::string show(const Trace& trace, const ir::Arg& arg) const {
    if (const ir::ValueId* value = arg.value())
      return fmt::format("the result of {}", ir::op_name(trace.graph.producer(*value)));
    return ir::to_string(arg);
  }

  const Trace& first_;
  const Trace& second_;
  std::vector<ir::ValueId> matches_;
  std::vector<NumberDifference> numbers_;
  ir::NodeId node_;  ///< the node of the first trace being compared
};

std::string text_of(const ir::Scalar& number) {
  return std::visit([](auto value) { return ir::to_string(ir::Arg{value}); }, number);
}

/// "argument 2", "size 1 of result 0".
std::string text_of(const NumberPlace& place) {
  switch (place.part) {
    case Part::argument: {
      auto text = fmt::format("argument {}", place.path[0]);
      for (size_t i = 1; i < place.path.size(); ++i) text += fmt::format("[{}]", place.path[i]);
      return text;
    }
    case Part::size:
      return fmt::format("size {} of result {}", place.path[1], place.path[0]);
    case Part::stride:
      return fmt::format("stride {} of result {}", place.path[1], place.path[0]);
    case Part::alias_offset:
      return fmt::format("the offset of result {}", place.path[0]);
  }
  return {};
}

}  // namespace

TraceComparison compare(const Trace& first, const Trace& second) { return Comparison(first, second).run(); }

std::string describe(const NumberDifference& difference, const Trace& first) {
  const ir::Node& node = first.graph.node(difference.place.node);
  return fmt::format("{}{}: {} was {}, is {}", ir::op_name(node), place_of(first, node), text_of(difference.place),
                     text_of(difference.first), text_of(difference.second));
}

std::optional<std::string> difference(const Trace& first, const Trace& second) {
  const auto found = compare(first, second);
  if (!found.numbers.empty()) return describe(found.numbers.front(), first);
  return found.other;
}

}  // namespace sinter::frontend
