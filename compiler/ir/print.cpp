#include "compiler/ir/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <unordered_set>

namespace sinter::ir {
namespace {

using NameOf = std::function<std::string(ValueId)>;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}
bool only_digits(std::string_view text) { return std::all_of(text.begin(), text.end(), is_digit); }
bool is_word(std::string_view text) {
  return !text.empty() && !is_digit(text[0]) && text[0] != '.' && std::all_of(text.begin(), text.end(), is_word_char);
}

std::string quote(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += fmt::format("\\x{:02x}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string word_or_quote(std::string_view text) { return is_word(text) ? std::string(text) : quote(text); }

/// "aten::add.Tensor" as "aten.add.Tensor"; quoted where that would not read back.
std::string op_name(std::string_view op) {
  const size_t colons = op.find("::");
  if (colons == std::string_view::npos) return quote(op);
  std::string dotted = fmt::format("{}.{}", op.substr(0, colons), op.substr(colons + 2));
  const bool reads_back = is_word(dotted) && op.substr(0, colons).find('.') == std::string_view::npos;
  return reads_back ? dotted : quote(op);
}

std::string print_arg(const Arg& arg, const NameOf& name_of);

struct ArgPrinter {
  const NameOf& name_of;

  std::string operator()(None) const { return "none"; }
  std::string operator()(ValueId value) const { return name_of(value); }
  std::string operator()(bool flag) const { return flag ? "true" : "false"; }
  std::string operator()(int64_t number) const { return fmt::format("{}", number); }
  std::string operator()(double number) const { return to_string(number); }
  std::string operator()(const std::string& text) const { return quote(text); }
  std::string operator()(DType dtype) const { return fmt::format("dtype({})", name(dtype)); }
  std::string operator()(Device device) const { return fmt::format("device({})", to_string(device)); }
  std::string operator()(const Enum& e) const { return fmt::format("enum({}, {})", word_or_quote(e.kind), e.value); }
  std::string operator()(Opaque opaque) const { return fmt::format("opaque({})", opaque.index); }
  std::string operator()(const ArgList& list) const {
    std::string text = "[";
    for (const Arg& element : list) {
      if (text.size() > 1) text += ", ";
      text += print_arg(element, name_of);
    }
    return text + "]";
  }
};

std::string print_arg(const Arg& arg, const NameOf& name_of) { return std::visit(ArgPrinter{name_of}, arg.data); }

/// Gives every value of one graph its printed name, without the percent sign.
class Names {
 public:
  explicit Names(const Graph& graph) : names_(graph.value_count()) {}

  /// Numbers of unnamed values start here.
  void reserve_numbers(size_t count) { next_number_ = count; }
  void set(ValueId value, std::string name) { names_[value.index] = std::move(name); }

  void define(ValueId value, std::string_view hint) {
    std::string wanted(hint);
    for (char& c : wanted) {
      if (!is_word_char(c)) c = '_';
    }
    if (only_digits(wanted)) return set(value, fmt::format("{}", next_number_++));
    if (taken_.insert(wanted).second) return set(value, std::move(wanted));
    const std::string base = without_number(wanted);
    size_t& next = next_suffix_[base];
    std::string unique;
    do {
      unique = fmt::format("{}.{}", base, ++next);
    } while (!taken_.insert(unique).second);
    set(value, std::move(unique));
  }

  [[nodiscard]] std::string operator()(ValueId value) const {
    if (value.index >= names_.size() || names_[value.index].empty()) {
      return value.valid() ? fmt::format("%undefined.{}", value.index) : "%undefined";
    }
    return "%" + names_[value.index];
  }

 private:
  static std::string without_number(const std::string& name) {
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos || dot == 0 || dot + 1 == name.size()) return name;
    return only_digits(std::string_view(name).substr(dot + 1)) ? name.substr(0, dot) : name;
  }

  std::vector<std::string> names_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, size_t> next_suffix_;
  size_t next_number_ = 0;
};

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph), names_(graph) {}

  std::string whole() {
    const std::vector<NodeId> inputs = define_all();
    std::string text = fmt::format("graph @{} on {} (", word_or_quote(graph_.name), to_string(graph_.device));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ValueId value = graph_.node(inputs[i]).results[0];
      text += fmt::format("{}{}: {}", i == 0 ? "" : ", ", names_(value), result_type(value));
    }
    text += fmt::format(") -> ({}) {{\n", join(graph_.outputs));
    lines(text, "  ");
    return text + "}\n";
  }

  std::vector<std::string> names() {
    define_all();
    std::vector<std::string> result;
    for (uint32_t index = 0; index < graph_.value_count(); ++index) result.push_back(names_({index}));
    return result;
  }

  /// The lines of a fused node's body, `yield` included.
  void body(std::string& text, size_t arg_count, const std::string& indent) {
    for (NodeId id : leading_inputs(arg_count)) {
      names_.set(graph_.node(id).results[0], fmt::format("{}", graph_.node(id).as<Input>()->index));
    }
    names_.reserve_numbers(arg_count);
    define_lines();
    lines(text, indent);
    text += fmt::format("{}yield{}{}\n", indent, graph_.outputs.empty() ? "" : " ", join(graph_.outputs));
  }

 private:
  /// Input nodes 0, 1, ... as far as they go; the header stands for them.
  std::vector<NodeId> leading_inputs(size_t limit) {
    std::map<uint32_t, NodeId> by_index;
    for (NodeId id : graph_.order()) {
      const auto* input = graph_.node(id).as<Input>();
      if (input != nullptr && graph_.node(id).results.size() == 1) by_index.try_emplace(input->index, id);
    }
    std::vector<NodeId> inputs;
    for (const auto& [index, id] : by_index) {
      if (index != inputs.size() || inputs.size() == limit) break;
      inputs.push_back(id);
      in_header_.insert(id);
    }
    return inputs;
  }

  void define(NodeId id) {
    for (ValueId value : graph_.node(id).results) names_.define(value, graph_.value(value).hint);
  }

  /// Names everything as a whole graph is named; gives the inputs of the header.
  std::vector<NodeId> define_all() {
    const std::vector<NodeId> inputs = leading_inputs(graph_.node_count());
    for (NodeId id : inputs) define(id);
    define_lines();
    return inputs;
  }

  void define_lines() {
    for (NodeId id : graph_.order()) {
      if (!in_header_.contains(id)) define(id);
    }
  }

  void lines(std::string& text, const std::string& indent) {
    for (NodeId id : graph_.order()) {
      if (!in_header_.contains(id)) line(text, graph_.node(id), indent);
    }
  }

  void line(std::string& text, const Node& node, const std::string& indent) {
    text += indent;
    if (!node.results.empty()) text += join(node.results) + " = ";
    text += std::visit([&](const auto& payload) { return head(payload, node); }, node.payload);
    for (size_t i = 0; i < node.results.size(); ++i) {
      text += (i == 0 ? " : " : ", ") + result_type(node.results[i]);
    }
    const auto* fused = node.as<Fused>();
    if (fused != nullptr) text += " {";
    text += comment(node.scope) + "\n";
    if (fused == nullptr) return;
    if (fused->body) Printer(*fused->body).body(text, node.args.size(), indent + "  ");
    text += indent + "}\n";
  }

  std::string head(const Input& input, const Node&) const { return fmt::format("input {}", input.index); }
  std::string head(const State& state, const Node&) const {
    return fmt::format("state {} {}", state.index, quote(state.name));
  }
  std::string head(const Call& call, const Node& node) const {
    std::string text = fmt::format("call {}({})", op_name(call.op), join(node.args));
    if (!call.mutates.empty()) text += fmt::format(" mutates({})", fmt::join(call.mutates, ", "));
    if (!call.functional.empty()) text += " functional " + op_name(call.functional);
    if (call.random) text += " random";
    if (call.impure) text += " impure";
    return text;
  }
  std::string head(const Primitive& primitive, const Node& node) const {
    const bool known = primitive.op.index < op_table().size();
    return fmt::format("{}{}{}", known ? row(primitive.op).name : "invalid_op", node.args.empty() ? "" : " ",
                       join(node.args));
  }
  std::string head(const Reduce& reduce, const Node& node) const {
    const bool known = reduce.op.index < reduction_table().size();
    return fmt::format("reduce {} {} over {}", known ? row(reduce.op).name : "invalid_reduction", join(node.args),
                       fmt::join(reduce.dims, ", "));
  }
  std::string head(const Join& joining, const Node& node) const {
    return fmt::format("join {} over {}", join(node.args), joining.dim);
  }
  std::string head(const Gather& gather, const Node& node) const {
    return fmt::format("gather {} over {}", join(node.args), fmt::join(gather.dims, ", "));
  }
  std::string head(const Position& position, const Node& /*node*/) const {
    return fmt::format("position over {}", position.dim);
  }
  std::string head(const Attention& attention, const Node& node) const {
    return fmt::format("attention {} scale {}{}{}", join(node.args), to_string(Arg{attention.scale}),
                       attention.zeros ? " zeros" : "", attention.causal ? " causal" : "");
  }
  std::string head(const View& view, const Node& node) const {
    return fmt::format("view {} + {}", join(node.args), view.offset);
  }
  std::string head(const Write&, const Node& node) const { return fmt::format("write {}", join(node.args)); }
  std::string head(const Fused& fused, const Node& node) const {
    return fmt::format("fused @{}({})", word_or_quote(fused.name), join(node.args));
  }

  std::string result_type(ValueId id) const {
    const Value& value = graph_.value(id);
    std::string text = to_string(value.type, graph_.device);
    if (value.alias) text += fmt::format(" alias {} + {}", names_(value.alias->base), value.alias->offset);
    if (value.alignment < full_alignment) text += fmt::format(" align {}", value.alignment);
    return text;
  }

  std::string comment(ScopeId id) const {
    if (id.index >= graph_.scopes().size()) return {};
    const Scope& scope = graph_.scope(id);
    std::string text = scope.module;
    if (!scope.source.empty()) text += "  " + scope.source;
    for (char& c : text) {
      if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text.empty() ? text : "  # " + text;
  }

  std::string join(const std::vector<ValueId>& values) const {
    std::string text;
    for (ValueId value : values) text += (text.empty() ? "" : ", ") + names_(value);
    return text;
  }

  std::string join(const std::vector<Arg>& args) const {
    const NameOf name_of = [this](ValueId value) { return names_(value); };
    std::string text;
    for (const Arg& arg : args) text += (text.empty() ? "" : ", ") + print_arg(arg, name_of);
    return text;
  }

  const Graph& graph_;
  Names names_;
  std::unordered_set<NodeId> in_header_;
};

}  // namespace

std::string place_text(std::string_view module, std::string_view source) {
  return fmt::format("{}{}{}", module, module.empty() || source.empty() ? "" : "  ", source);
}

std::string op_name(const Node& node) {
  if (const auto* call = node.as<Call>()) return call->op;
  if (const auto* input = node.as<Input>()) return fmt::format("input {}", input->index);
  if (const auto* state = node.as<State>()) return fmt::format("state {}", state->name);
  return "a node";
}

std::string to_string(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string to_string(const Arg& arg) {
  return print_arg(arg, [](ValueId value) { return fmt::format("%{}", value.index); });
}

std::vector<std::string> value_names(const Graph& graph) { return Printer(graph).names(); }

std::string print(const Graph& graph) { return Printer(graph).whole(); }

}  // namespace sinter::ir
