#include "compiler/ir/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>

#include "compiler/ir/parse_type.h"
#include "compiler/ir/text_cursor.h"

namespace sinter::ir {
namespace {

constexpr int64_t index_limit = std::numeric_limits<uint32_t>::max() - 1;
/// Lists and fused bodies nest no deeper than this.
constexpr int depth_limit = 16;

struct Declared {
  Type type;
  std::optional<Alias> alias;
  int64_t alignment = full_alignment;
};

struct ResultName {
  std::string name;
  size_t place = 0;
};

bool all_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Reads the nodes of one graph: the whole text, or the body of a fused node.
class GraphReader {
 public:
  GraphReader(TextCursor& cursor, Graph& graph, int depth) : cursor_(cursor), graph_(graph), depth_(depth) {}

  void whole() {
    cursor_.expect("graph", "graph @name on cpu (%x: f32[8]) -> (%y) {");
    cursor_.expect("@", "@name");
    graph_.name = cursor_.word_or_quoted("the graph's name", "@mlp");
    cursor_.expect("on", "on cuda:0");
    graph_.device = read_device(cursor_);
    inputs();
    cursor_.expect("->", "-> (%y) {");
    cursor_.expect("(", "-> (%y) {");
    const std::vector<ResultName> outputs = names(")");
    cursor_.expect(")", "-> (%y) {");
    cursor_.expect("{", "-> (%y) {");
    while (!cursor_.accept("}")) line();
    for (const ResultName& output : outputs) graph_.outputs.push_back(lookup(output));
    if (!cursor_.at_end()) cursor_.fail("the end of the text", "");
  }

  void body(const std::vector<Type>& arg_types) {
    for (size_t i = 0; i < arg_types.size(); ++i) {
      const ValueId value = graph_.add1(Input{static_cast<uint32_t>(i)}, {}, arg_types[i]);
      values_.emplace(fmt::format("{}", i), value);
    }
    while (!cursor_.accept("yield")) line();
    for (const ResultName& output : names("}")) graph_.outputs.push_back(lookup(output));
    cursor_.expect("}", "}");
  }

 private:
  void inputs() {
    cursor_.expect("(", "(%x: f32[8])");
    for (uint32_t index = 0; !cursor_.accept(")"); ++index) {
      if (index > 0) cursor_.expect(",", "(%x: f32[8], %y: f32[8])");
      const ResultName name = result_name();
      cursor_.expect(":", "%x: f32[8]");
      add({name}, {declared_type()}, Input{index}, {}, {});
    }
  }

  ResultName result_name() {
    const size_t place = cursor_.mark();
    return {cursor_.value_name("%x"), place};
  }

  std::vector<ResultName> names(std::string_view close) {
    std::vector<ResultName> list;
    if (cursor_.at(close)) return list;
    do {
      list.push_back(result_name());
    } while (cursor_.accept(","));
    return list;
  }

  ValueId lookup(const ResultName& name) const {
    const auto known = values_.find(name.name);
    if (known == values_.end()) cursor_.fail_at(name.place, fmt::format("%{} is not defined here", name.name));
    return known->second;
  }

  void line() {
    std::vector<ResultName> results;
    if (cursor_.at("%")) {
      results = names("=");
      cursor_.expect("=", "%y = relu %x : f32[8]");
    }
    const size_t place = cursor_.mark();
    const std::string keyword = cursor_.word("a line (state, call, reduce, join, view, fused or a pointwise op) or '}'",
                                             "%y = relu %x : f32[8]");
    if (keyword == "input") return leaf(results, Input{index("an input's position")});
    if (keyword == "state") return state(results);
    if (keyword == "call") return call(results);
    if (keyword == "reduce") return reduce(results);
    if (keyword == "join") return join(results);
    if (keyword == "gather") return gather(results);
    if (keyword == "attention") return attention(results);
    if (keyword == "position") return position(results);
    if (keyword == "view") return view(results);
    if (keyword == "fused") return fused(results);
    if (keyword == "write") return write(results, place);
    const auto op = find_op(keyword);
    if (!op)
      cursor_.fail_at(place, fmt::format("unknown op '{}'. `call` opens an ATen call: call aten.relu(%x)", keyword));
    std::vector<Arg> args;
    if (!cursor_.at(":")) args = arguments(":");
    typed(results, Primitive{*op}, std::move(args));
  }

  uint32_t index(std::string_view what) { return static_cast<uint32_t>(cursor_.natural(index_limit, what, "0")); }

  void leaf(const std::vector<ResultName>& results, Payload payload) { typed(results, std::move(payload), {}); }

  void state(const std::vector<ResultName>& results) {
    State state{index("a state slot"), {}};
    state.name = cursor_.quoted("state 0 \"fc1.weight\"");
    typed(results, std::move(state), {});
  }

  std::string op_name() {
    constexpr std::string_view example = "aten.add.Tensor";
    if (cursor_.at("\"")) return cursor_.quoted(example);
    const size_t place = cursor_.mark();
    std::string name = cursor_.word("an op", example);
    const size_t dot = name.find('.');
    if (dot == std::string::npos)
      cursor_.fail_at(place, fmt::format("op '{}' has no namespace. Example: {}", name, example));
    return name.replace(dot, 1, "::");
  }

  void call(const std::vector<ResultName>& results) {
    Call call;
    call.op = op_name();
    cursor_.expect("(", "call aten.relu(%x)");
    std::vector<Arg> args = arguments(")");
    cursor_.expect(")", "call aten.relu(%x)");
    if (cursor_.accept("mutates")) {
      cursor_.expect("(", "mutates(0)");
      do {
        call.mutates.push_back(index("an argument's position"));
      } while (cursor_.accept(","));
      cursor_.expect(")", "mutates(0)");
    }
    if (cursor_.accept("functional")) call.functional = op_name();
    call.random = cursor_.accept("random");
    call.impure = cursor_.accept("impure");
    if (results.empty()) return add({}, {}, std::move(call), std::move(args), comment());
    typed(results, std::move(call), std::move(args));
  }

  void write(const std::vector<ResultName>& results, size_t place) {
    if (!results.empty()) cursor_.fail_at(place, "a write has no result. Example: write %x, %y");
    std::vector<Arg> args{{lookup(result_name())}};
    cursor_.expect(",", "write %x, %y");
    args.push_back({lookup(result_name())});
    add({}, {}, Write{}, std::move(args), comment());
  }

  void reduce(const std::vector<ResultName>& results) {
    constexpr std::string_view example = "reduce sum %x over 1 : f32[8,1]";
    const size_t place = cursor_.mark();
    const std::string name = cursor_.word("a reduction", example);
    const auto op = find_reduction(name);
    if (!op) cursor_.fail_at(place, fmt::format("unknown reduction '{}'. Example: {}", name, example));
    std::vector<Arg> args{{lookup(result_name())}};
    cursor_.expect("over", example);
    Reduce reduce{*op, {}};
    do {
      reduce.dims.push_back(index("a dim"));
    } while (cursor_.accept(","));
    typed(results, std::move(reduce), std::move(args));
  }

  void join(const std::vector<ResultName>& results) {
    constexpr std::string_view example = "join %x, %y over 1 : f32[8,4]";
    std::vector<Arg> args = arguments("over");
    cursor_.expect("over", example);
    typed(results, Join{index("a dim")}, std::move(args));
  }

  void gather(const std::vector<ResultName>& results) {
    constexpr std::string_view example = "gather %table, %places over 0 : f32[8,4]";
    std::vector<Arg> args = arguments("over");
    cursor_.expect("over", example);
    Gather gather;
    do {
      gather.dims.push_back(index("a dim"));
    } while (cursor_.accept(","));
    typed(results, std::move(gather), std::move(args));
  }

  void position(const std::vector<ResultName>& results) {
    cursor_.expect("over", "position over 1 : i64[8,4]");
    typed(results, Position{index("a dim")}, {});
  }

  void attention(const std::vector<ResultName>& results) {
    constexpr std::string_view example = "attention %q, %k, %v scale 0.125 : f16[2,64,32]";
    std::vector<Arg> args = arguments("scale");
    cursor_.expect("scale", example);
    const size_t place = cursor_.mark();
    const Arg scale = argument(0);
    const auto* number = std::get_if<double>(&scale.data);
    if (number == nullptr) cursor_.fail_at(place, fmt::format("the scale is no real number. Example: {}", example));
    const bool zeros = cursor_.accept("zeros");
    const bool causal = cursor_.accept("causal");
    typed(results, Attention{*number, zeros, causal}, std::move(args));
  }

  void view(const std::vector<ResultName>& results) {
    std::vector<Arg> args = arguments("+");
    cursor_.expect("+", "view %x + 0 : f32[8]");
    const int64_t offset = cursor_.integer("an offset in elements", "view %x + 0 : f32[8]");
    typed(results, View{offset}, std::move(args));
  }

  void fused(const std::vector<ResultName>& results) {
    cursor_.expect("@", "fused @fused_add(%x, %y)");
    Fused fused{cursor_.word_or_quoted("the kernel's name", "fused_add"), nullptr};
    cursor_.expect("(", "fused @fused_add(%x, %y)");
    const size_t place = cursor_.mark();
    std::vector<Arg> args = arguments(")");
    cursor_.expect(")", "fused @fused_add(%x, %y)");
    const std::vector<Type> arg_types = types_of(args, place);
    const std::vector<Declared> declared = types(results);
    cursor_.expect("{", "fused @fused_relu(%x) : f32[8] {");
    const ScopeId scope = comment();
    if (depth_ == depth_limit) cursor_.fail_at(place, "fused bodies nest too deep");
    auto inner = std::make_shared<Graph>();
    inner->name = fused.name;
    inner->device = graph_.device;
    GraphReader(cursor_, *inner, depth_ + 1).body(arg_types);
    fused.body = std::move(inner);
    add(results, declared, std::move(fused), std::move(args), scope);
  }

  std::vector<Type> types_of(const std::vector<Arg>& args, size_t place) const {
    std::vector<Type> result;
    for (const Arg& arg : args) {
      if (arg.value() == nullptr) cursor_.fail_at(place, "a fused node takes values only. Example: fused @f(%x, %y)");
      result.push_back(graph_.type(*arg.value()));
    }
    return result;
  }

  Declared declared_type() {
    Declared declared{.type = read_type(cursor_, graph_.device), .alias = std::nullopt};
    if (cursor_.accept("alias")) {
      declared.alias = Alias{lookup(result_name()), 0};
      cursor_.expect("+", "alias %x + 0");
      declared.alias->offset = cursor_.integer("an offset in elements", "alias %x + 0");
    }
    if (cursor_.accept("align")) declared.alignment = alignment();
    return declared;
  }

  int64_t alignment() {
    const size_t place = cursor_.mark();
    const int64_t bytes = cursor_.natural(full_alignment, "an alignment in bytes", "align 8");
    if (!std::has_single_bit(static_cast<uint64_t>(bytes))) cursor_.fail_at(place, "an alignment is a power of two");
    return bytes;
  }

  /// `: TYPE, TYPE`, one for each result.
  std::vector<Declared> types(const std::vector<ResultName>& results) {
    if (results.empty()) cursor_.fail_at(cursor_.mark(), "the line defines no value. Example: %y = relu %x : f32[8]");
    cursor_.expect(":", "%y = relu %x : f32[8]");
    std::vector<Declared> declared;
    for (size_t i = 0; i < results.size(); ++i) {
      if (i > 0) cursor_.expect(",", "%a, %b = call ns.op(%x) : f32[8], f32[8]");
      declared.push_back(declared_type());
    }
    return declared;
  }

  void typed(const std::vector<ResultName>& results, Payload payload, std::vector<Arg> args) {
    const std::vector<Declared> declared = types(results);
    add(results, declared, std::move(payload), std::move(args), comment());
  }

  void add(const std::vector<ResultName>& results, const std::vector<Declared>& declared, Payload payload,
           std::vector<Arg> args, ScopeId scope) {
    std::vector<Type> types;
    for (const Declared& one : declared) types.push_back(one.type);
    const NodeId id = graph_.add(std::move(payload), std::move(args), std::move(types), scope);
    for (size_t i = 0; i < results.size(); ++i) {
      const ValueId value = graph_.node(id).results[i];
      graph_.value(value).alias = declared[i].alias;
      graph_.value(value).alignment = declared[i].alignment;
      if (!all_digits(results[i].name)) graph_.value(value).hint = results[i].name;
      const bool fresh = values_.emplace(results[i].name, value).second;
      if (!fresh) cursor_.fail_at(results[i].place, fmt::format("%{} is defined twice", results[i].name));
    }
  }

  ScopeId comment() {
    const auto text = cursor_.line_comment();
    if (!text || text->empty()) return {};
    const size_t gap = text->find("  ");
    if (gap == std::string::npos) return graph_.scope({*text, {}});
    return graph_.scope({text->substr(0, gap), text->substr(gap + 2)});
  }

  std::vector<Arg> arguments(std::string_view close) {
    std::vector<Arg> args;
    if (cursor_.at(close)) return args;
    do {
      args.push_back(argument(0));
    } while (cursor_.accept(","));
    return args;
  }

  template <class Read>
  auto parenthesised(Read read) {
    cursor_.expect("(", "dtype(f16)");
    auto result = read();
    cursor_.expect(")", "dtype(f16)");
    return result;
  }

  Arg argument(int depth) {
    constexpr std::string_view example = "%x, 2, 0.5, true, none, [1, 2], \"text\" or dtype(f16)";
    if (cursor_.at("%")) return {lookup(result_name())};
    if (cursor_.at("\"")) return {cursor_.quoted(example)};
    if (cursor_.at("[")) return list(depth);
    if (cursor_.accept("none")) return {None{}};
    if (cursor_.accept("true")) return {true};
    if (cursor_.accept("false")) return {false};
    const size_t place = cursor_.mark();
    const std::string_view number = cursor_.number_text();
    if (!number.empty()) return scalar(number, place);
    if (cursor_.accept("dtype")) return {parenthesised([&] { return read_dtype(cursor_); })};
    if (cursor_.accept("device")) return {parenthesised([&] { return read_device(cursor_); })};
    if (cursor_.accept("opaque")) return {parenthesised([&] { return Opaque{index("an opaque argument's slot")}; })};
    if (cursor_.accept("enum")) return {parenthesised([&] { return enumerator(); })};
    cursor_.fail("an argument", example);
  }

  Enum enumerator() {
    constexpr std::string_view example = "enum(memory_format, 2)";
    Enum result{cursor_.word_or_quoted("a kind", example), 0};
    cursor_.expect(",", example);
    result.value = cursor_.integer("a number", example);
    return result;
  }

  Arg list(int depth) {
    const size_t place = cursor_.mark();
    cursor_.expect("[", "[1, 2]");
    if (depth == depth_limit) cursor_.fail_at(place, "lists nest too deep");
    ArgList elements;
    while (!cursor_.accept("]")) {
      if (!elements.empty()) cursor_.expect(",", "[1, 2]");
      elements.push_back(argument(depth + 1));
    }
    return {std::move(elements)};
  }

  Arg scalar(std::string_view text, size_t place) {
    const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
    const char* begin = digits.begin();
    const char* end = digits.end();
    int64_t integer = 0;
    const auto as_integer = std::from_chars(begin, end, integer);
    if (as_integer.ec == std::errc() && as_integer.ptr == end) return {integer};
    double number = 0;
    const auto as_double = std::from_chars(begin, end, number);
    const bool fits = as_double.ec == std::errc() && as_double.ptr == end &&
                      digits.find_first_not_of("-0123456789") != std::string_view::npos;
    if (!fits) cursor_.fail_at(place, fmt::format("'{}' is no number, or too large", text));
    return {number};
  }

  TextCursor& cursor_;
  Graph& graph_;
  int depth_;
  std::unordered_map<std::string, ValueId> values_;
};

}  // namespace

Graph parse(std::string_view text, std::string_view origin) {
  TextCursor cursor(text, origin);
  Graph graph;
  GraphReader(cursor, graph, 0).whole();
  return graph;
}

}  // namespace sinter::ir
