#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <cstring>
#include <string>

#include "compiler/ir/print.h"
#include "frontend/capture.h"
#include "frontend/ledger.h"

namespace sinter::frontend {
namespace {

using Difference = std::optional<std::string>;

/// Compares two traces node by node; values correspond by their position.
class Comparison {
 public:
  Comparison(const Trace& first, const Trace& second) : first_(first), second_(second) {}

  Difference run() {
    const auto& order = first_.graph.order();
    const auto& other_order = second_.graph.order();
    for (size_t i = 0; i < std::min(order.size(), other_order.size()); ++i) {
      if (auto found = nodes(first_.graph.node(order[i]), second_.graph.node(other_order[i]))) return found;
    }
    if (order.size() != other_order.size()) return more_nodes();
    return outputs();
  }

 private:
  static std::string op_name(const ir::Node& node) {
    if (const auto* call = node.as<ir::Call>()) return call->op;
    if (const auto* state = node.as<ir::State>()) return fmt::format("state {}", state->name);
    if (const auto* content = node.as<ir::Constant>()) return fmt::format("content {}", content->index);
    if (const auto* input = node.as<ir::Input>()) return fmt::format("input {}", input->index);
    return "a node";
  }

  static std::string place(const Trace& trace, const ir::Node& node) {
    if (!node.scope.valid()) return {};
    const ir::Scope& scope = trace.graph.scope(node.scope);
    const char* gap = scope.module.empty() || scope.source.empty() ? "" : "  ";
    return fmt::format(" at {}{}{}", scope.module, gap, scope.source);
  }

  Difference more_nodes() const {
    const bool first_longer = first_.graph.order().size() > second_.graph.order().size();
    const Trace& longer = first_longer ? first_ : second_;
    const Trace& shorter = first_longer ? second_ : first_;
    const ir::Node& extra = longer.graph.node(longer.graph.order()[shorter.graph.order().size()]);
    return fmt::format("{}{} was called in the {} run only", op_name(extra), place(longer, extra),
                       first_longer ? "first" : "second");
  }

  Difference outputs() {
    const auto& a = first_.graph.outputs;
    const auto& b = second_.graph.outputs;
    if (a.size() != b.size()) return fmt::format("results: {}, then {}", a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      if (!same_value(a[i], b[i])) return fmt::format("result {}: another value is returned", i);
    }
    return std::nullopt;
  }

  Difference nodes(const ir::Node& a, const ir::Node& b) {
    if (auto found = leaves(a, b)) return found;
    if (op_name(a) != op_name(b)) {
      return fmt::format("{}{}, then {}{}", op_name(a), place(first_, a), op_name(b), place(second_, b));
    }
    if (a.args.size() != b.args.size()) return fmt::format("{}{}: other arguments", op_name(a), place(first_, a));
    for (size_t i = 0; i < a.args.size(); ++i) {
      if (same(a.args[i], b.args[i])) continue;
      return fmt::format("{}{}: argument {} was {}, is {}", op_name(a), place(first_, a), i, show(first_, a.args[i]),
                         show(second_, b.args[i]));
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
      return fmt::format("{}{}: {} results, then {}", op_name(a), place(first_, a), a.results.size(), b.results.size());
    }
    for (size_t i = 0; i < a.results.size(); ++i) {
      const ir::Value& x = first_.graph.value(a.results[i]);
      const ir::Value& y = second_.graph.value(b.results[i]);
      const bool same_alias =
          x.alias.has_value() == y.alias.has_value() &&
          (!x.alias || (same_value(x.alias->base, y.alias->base) && x.alias->offset == y.alias->offset));
      if (x.type != y.type || !same_alias) {
        return fmt::format("{}{}: result {} was {}, is {}", op_name(a), place(first_, a), i,
                           to_string(x.type, first_.graph.device), to_string(y.type, second_.graph.device));
      }
      match(a.results[i], b.results[i]);
    }
    return std::nullopt;
  }

  void match(ir::ValueId a, ir::ValueId b) {
    if (matches_.size() <= a.index) matches_.resize(a.index + 1);
    matches_[a.index] = b;
  }
  bool same_value(ir::ValueId a, ir::ValueId b) const { return a.index < matches_.size() && matches_[a.index] == b; }

  bool same(const ir::Arg& a, const ir::Arg& b) const {
    if (a.data.index() != b.data.index()) return false;
    if (const ir::ValueId* value = a.value()) return same_value(*value, *b.value());
    if (const auto* real = std::get_if<double>(&a.data)) return same_number(*real, std::get<double>(b.data));
    if (const ir::ArgList* list = a.list()) {
      return std::equal(list->begin(), list->end(), b.list()->begin(), b.list()->end(),
                        [&](const ir::Arg& x, const ir::Arg& y) { return same(x, y); });
    }
    if (const auto* opaque = std::get_if<ir::Opaque>(&a.data)) {
      return same_opaque(first_.opaques[opaque->index], second_.opaques[std::get<ir::Opaque>(b.data).index]);
    }
    return a == b;
  }

  static bool same_opaque(const c10::IValue& a, const c10::IValue& b) {
    if (a.isComplexDouble() && b.isComplexDouble()) return a.toComplexDouble() == b.toComplexDouble();
    return a.is(b);
  }

  /// Equal to the bit, so that nan equals itself and the zeros differ.
  static bool same_number(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

  std::string show(const Trace& trace, const ir::Arg& arg) const {
    if (const ir::ValueId* value = arg.value())
      return fmt::format("the result of {}", op_name(trace.graph.producer(*value)));
    return ir::to_string(arg);
  }

  const Trace& first_;
  const Trace& second_;
  std::vector<ir::ValueId> matches_;
};

}  // namespace

std::optional<std::string> difference(const Trace& first, const Trace& second) {
  return Comparison(first, second).run();
}

}  // namespace sinter::frontend
