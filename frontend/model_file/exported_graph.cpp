#include "frontend/model_file/exported_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <unordered_map>

#include "compiler/support/errors.h"
#include "compiler/support/first_line.h"

namespace sinter::frontend {
namespace {

using Json = nlohmann::json;

constexpr int kSchemaMajor = 8;
constexpr int kDeepestGraph = 16;

/// The only member of a tagged union: its tag and its value. PyTorch writes {"as_int": 3}.
std::pair<const std::string&, const Json&> tagged(const Json& json) {
  if (!json.is_object() || json.size() != 1) throw std::invalid_argument("a tagged value has one member");
  const auto member = json.begin();
  return {member.key(), member.value()};
}

at::Layout layout_of(int64_t number) {
  constexpr std::array<at::Layout, 8> layouts{at::kStrided,   at::kSparse,    at::kSparseCsr, at::kSparseCsc,
                                              at::kSparseBsr, at::kSparseBsc, at::kMkldnn,    at::kStrided};
  return layouts.at(static_cast<size_t>(number));
}

at::MemoryFormat memory_format_of(int64_t number) {
  constexpr std::array<at::MemoryFormat, 5> formats{at::MemoryFormat::Contiguous, at::MemoryFormat::Contiguous,
                                                    at::MemoryFormat::ChannelsLast, at::MemoryFormat::ChannelsLast3d,
                                                    at::MemoryFormat::Preserve};
  return formats.at(static_cast<size_t>(number));
}

at::Device device_of(const Json& json) {
  const auto type = json.at("type").get<std::string>();
  const Json& index = json.at("index");
  return at::Device(index.is_null() ? type : fmt::format("{}:{}", type, index.get<int>()));
}

/// JSON writes what it has no numbers for as words.
double number_of(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const auto text = json.get<std::string>();
  if (text == "Infinity" || text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity" || text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "NaN" || text == "nan") return std::numeric_limits<double>::quiet_NaN();
  throw std::invalid_argument("'" + text + "' is not a number");
}

std::optional<AffineSize> size_of(const Json& json) {
  const auto [tag, value] = tagged(json);
  if (tag == "as_int") return AffineSize{{}, 0, value.get<int64_t>()};
  return parse_affine(value.at("expr_str").get<std::string>());
}

int64_t hint_of(const Json& json) {
  const auto [tag, value] = tagged(json);
  if (tag == "as_int") return value.get<int64_t>();
  const Json& hint = value.at("hint");
  return hint.is_null() ? -1 : tagged(hint).second.get<int64_t>();
}

/// Reads one graph; names of values become slots.
class GraphParser {
 public:
  GraphParser(const Json& json, int depth) : json_(json), depth_(depth) {
    if (depth > kDeepestGraph) throw std::invalid_argument("graphs are nested too deeply");
  }

  ExportedGraph parse() {
    for (const Json& input : json_.at("inputs")) graph_.inputs.push_back(argument(input, true));
    for (const Json& node : json_.at("nodes")) add_node(node);
    for (const Json& output : json_.at("outputs")) graph_.outputs.push_back(argument(output));
    graph_.metas.resize(graph_.names.size());
    for (const auto& [name, meta] : json_.at("tensor_values").items()) {
      if (const auto found = slots_.find(name); found != slots_.end()) graph_.metas[found->second] = parse_meta(meta);
    }
    return std::move(graph_);
  }

 private:
  void add_node(const Json& json) {
    ExportedNode node;
    node.target = json.at("target").get<std::string>();
    for (const Json& input : json.at("inputs")) {
      node.inputs.push_back({input.at("name").get<std::string>(), argument(input.at("arg"))});
    }
    for (const Json& output : json.at("outputs")) node.outputs.push_back(argument(output, true));
    const Json& metadata = json.at("metadata");
    node.module = module_of(metadata.value("nn_module_stack", ""));
    node.place = place_of(metadata.value("stack_trace", ""));
    graph_.nodes.push_back(std::move(node));
  }

  ExportedArgument value(const std::string& name, bool defines) {
    const auto [found, fresh] = slots_.try_emplace(name, static_cast<uint32_t>(graph_.names.size()));
    if (fresh) {
      if (!defines) throw std::invalid_argument("the value '" + name + "' is used before it is made");
      graph_.names.push_back(name);
    }
    return {Slot{found->second}};
  }

  ExportedArgument list(const Json& json, bool defines, std::string_view item_tag) {
    ExportedArgument::List items;
    for (const Json& item : json) items.push_back(item_argument(item, defines, item_tag));
    return {std::move(items)};
  }

  /// An item of a list whose tag tells what its items are: "as_ints", "as_tensors".
  ExportedArgument item_argument(const Json& item, bool defines, std::string_view item_tag) {
    if (item_tag == "name") return value(item.at("name").get<std::string>(), defines);
    if (item_tag == "tagged") return argument(item, defines);
    if (item_tag == "names") return list(item, defines, "name");
    if (item_tag == "ints") return list(item, defines, "plain");
    return {plain(item)};
  }

  static c10::IValue plain(const Json& json) {
    if (json.is_boolean()) return json.get<bool>();
    if (json.is_number_integer()) return json.get<int64_t>();
    if (json.is_number_float()) return json.get<double>();
    return json.get<std::string>();
  }

  ExportedArgument argument(const Json& json, bool defines = false) {
    const auto [tag, content] = tagged(json);
    static const std::unordered_map<std::string_view, std::string_view> lists{
        {"as_tensors", "name"},         {"as_ints", "plain"},        {"as_floats", "float"},
        {"as_bools", "plain"},          {"as_strings", "plain"},     {"as_sym_ints", "tagged"},
        {"as_sym_bools", "tagged"},     {"as_sym_floats", "tagged"}, {"as_optional_tensors", "tagged"},
        {"as_nested_tensors", "names"}, {"as_int_lists", "ints"}};
    if (const auto found = lists.find(tag); found != lists.end()) {
      return found->second == "float" ? floats(content) : list(content, defines, found->second);
    }
    if (tag == "as_name") return value(content.get<std::string>(), defines);
    if (tag == "as_tensor") return value(content.at("name").get<std::string>(), defines);
    if (tag == "as_graph") {
      return {std::make_shared<const ExportedGraph>(GraphParser(content.at("graph"), depth_ + 1).parse())};
    }
    // The tagged values that hold a name or a number of their own.
    if (tag == "as_sym_int" || tag == "as_sym_float" || tag == "as_sym_bool" || tag == "as_optional_tensor") {
      return argument(content, defines);
    }
    return {constant(tag, content)};
  }

  static ExportedArgument floats(const Json& json) {
    ExportedArgument::List items;
    for (const Json& item : json) items.push_back({c10::IValue(number_of(item))});
    return {std::move(items)};
  }

  static c10::IValue constant(const std::string& tag, const Json& json) {
    if (tag == "as_none") return {};
    if (tag == "as_int") return json.get<int64_t>();
    if (tag == "as_float") return number_of(json);
    if (tag == "as_bool") return json.get<bool>();
    if (tag == "as_string" || tag == "as_operator") return json.get<std::string>();
    if (tag == "as_scalar_type") return static_cast<int64_t>(exported_dtype(json.get<int64_t>()));
    if (tag == "as_layout") return static_cast<int64_t>(layout_of(json.get<int64_t>()));
    if (tag == "as_memory_format") return static_cast<int64_t>(memory_format_of(json.get<int64_t>()));
    if (tag == "as_device") return device_of(json);
    if (tag == "as_complex") return c10::complex<double>(number_of(json.at("real")), number_of(json.at("imag")));
    throw std::invalid_argument("arguments of kind '" + tag + "' are not supported");
  }

  /// "L__self__,,net.Net;L__self___fc,fc,torch.nn.modules.linear.Linear": the path is the last entry's second part.
  static std::string module_of(const std::string& stack) {
    const std::string last = stack.substr(stack.rfind(';') + 1);
    const size_t first = last.find(',');
    if (first == std::string::npos) return {};
    return last.substr(first + 1, last.find(',', first + 1) - first - 1);
  }

  /// The innermost line of Python outside PyTorch: `File "net.py", line 3, in forward`.
  static std::string place_of(const std::string& trace) {
    std::string place;
    for (size_t at = trace.find("File \""); at != std::string::npos; at = trace.find("File \"", at)) {
      at += 6;
      const size_t quote = trace.find("\", line ", at);
      if (quote == std::string::npos) break;
      const std::string file = trace.substr(at, quote - at);
      const size_t number = quote + 8;
      const bool is_library = file.find("/torch/") != std::string::npos || file.starts_with('<');
      if (!is_library) {
        place = fmt::format("{}:{}", file.substr(file.rfind('/') + 1),
                            trace.substr(number, trace.find_first_not_of("0123456789", number) - number));
      }
    }
    return place;
  }

  const Json& json_;
  int depth_;
  ExportedGraph graph_;
  std::unordered_map<std::string, uint32_t> slots_;
};

InputSpec input_spec(const Json& json) {
  const auto [tag, spec] = tagged(json);
  if (tag == "user_input") return {InputKind::user, {}};
  if (tag == "parameter") return {InputKind::parameter, spec.at("parameter_name").get<std::string>()};
  if (tag == "buffer") return {InputKind::buffer, spec.at("buffer_name").get<std::string>()};
  if (tag == "tensor_constant") {
    return {InputKind::constant_tensor, spec.at("tensor_constant_name").get<std::string>()};
  }
  if (tag == "constant_input") return {InputKind::constant, spec.at("name").get<std::string>()};
  throw std::invalid_argument("inputs of kind '" + tag + "' are not supported");
}

OutputSpec output_spec(const Json& json) {
  const auto [tag, spec] = tagged(json);
  if (tag == "user_output" || tag == "loss_output") return {OutputKind::user, {}};
  if (tag == "buffer_mutation") return {OutputKind::buffer, spec.at("buffer_name").get<std::string>()};
  if (tag == "parameter_mutation") return {OutputKind::parameter, spec.at("parameter_name").get<std::string>()};
  if (tag == "user_input_mutation") return {OutputKind::user_input, spec.at("user_input_name").get<std::string>()};
  throw std::invalid_argument("results of kind '" + tag + "' are not supported");
}

/// "Net" of "L__self__,,net.Net;L__self___fc,...".
std::string root_class(const Json& graph) {
  for (const Json& node : graph.at("nodes")) {
    const auto stack = node.at("metadata").value("nn_module_stack", "");
    if (stack.empty()) continue;
    const std::string first = stack.substr(0, stack.find(';'));
    return first.substr(first.find_last_of(".,") + 1);
  }
  return "program";
}

std::optional<int64_t> bound(const Json& range, const char* name) {
  const auto found = range.find(name);
  if (found == range.end() || found->is_null()) return std::nullopt;
  return found->get<int64_t>();
}

void check_version(const std::string& path, const Json& json) {
  const Json& version = json.at("schema_version");
  const int major = version.at("major").get<int>();
  if (major == kSchemaMajor) return;
  throw UserError(fmt::format(
      "{}: its schema has version {}.{}, this Sinter reads version {}: {}", path, major, version.at("minor").get<int>(),
      kSchemaMajor, major > kSchemaMajor ? "use a newer Sinter" : "export it again with PyTorch 2.8 or newer"));
}

ExportedFile parse(const std::string& path, const Json& json) {
  check_version(path, json);
  const Json& module = json.at("graph_module");
  ExportedFile file;
  file.graph = GraphParser(module.at("graph"), 0).parse();
  for (const Json& spec : module.at("signature").at("input_specs")) file.inputs.push_back(input_spec(spec));
  for (const Json& spec : module.at("signature").at("output_specs")) file.outputs.push_back(output_spec(spec));
  if (file.inputs.size() != file.graph.inputs.size() || file.outputs.size() != file.graph.outputs.size()) {
    throw std::invalid_argument("the signature does not match the graph");
  }
  file.root = root_class(module.at("graph"));
  const Json& calls = module.at("module_call_graph");
  if (!calls.empty() && calls[0].at("fqn") == "" && !calls[0].at("signature").is_null()) {
    const Json& signature = calls[0].at("signature");
    file.input_tree = signature.at("in_spec").get<std::string>();
    file.output_tree = signature.at("out_spec").get<std::string>();
    const auto names = signature.find("forward_arg_names");
    if (names != signature.end() && names->is_array()) file.argument_names = names->get<std::vector<std::string>>();
  }
  for (const auto& [symbol, range] : json.at("range_constraints").items()) {
    file.ranges.push_back({symbol, {bound(range, "min_val"), bound(range, "max_val")}});
  }
  return file;
}

}  // namespace

at::ScalarType exported_dtype(int64_t number) {
  using at::ScalarType;
  static const std::unordered_map<int64_t, ScalarType> types{{1, ScalarType::Byte},
                                                             {2, ScalarType::Char},
                                                             {3, ScalarType::Short},
                                                             {4, ScalarType::Int},
                                                             {5, ScalarType::Long},
                                                             {6, ScalarType::Half},
                                                             {7, ScalarType::Float},
                                                             {8, ScalarType::Double},
                                                             {9, ScalarType::ComplexHalf},
                                                             {10, ScalarType::ComplexFloat},
                                                             {11, ScalarType::ComplexDouble},
                                                             {12, ScalarType::Bool},
                                                             {13, ScalarType::BFloat16},
                                                             {28, ScalarType::UInt16},
                                                             {29, ScalarType::Float8_e4m3fn},
                                                             {30, ScalarType::Float8_e5m2},
                                                             {31, ScalarType::Float8_e4m3fnuz},
                                                             {32, ScalarType::Float8_e5m2fnuz}};
  return types.at(number);
}

std::vector<int64_t> parse_static(const Json& sizes) {
  std::vector<int64_t> result;
  for (const Json& size : sizes) {
    const auto [tag, value] = tagged(size);
    if (tag != "as_int") throw std::invalid_argument("a stored tensor has a symbolic size");
    result.push_back(value.get<int64_t>());
  }
  return result;
}

ExportedMeta parse_meta(const Json& json) {
  ExportedMeta meta;
  meta.dtype = exported_dtype(json.at("dtype").get<int64_t>());
  meta.device = device_of(json.at("device"));
  for (const Json& size : json.at("sizes")) {
    meta.sizes.push_back(size_of(size));
    meta.hints.push_back(hint_of(size));
  }
  return meta;
}

ExportedFile parse_exported(const std::string& path, const std::string& text) {
  try {
    return parse(path, Json::parse(text));
  } catch (const UserError&) {
    throw;
  } catch (const std::exception& error) {  // of the JSON library, of a table look-up, or of this reader
    throw UserError(
        fmt::format("{}: models/model.json is not what torch.export writes: {}", path, first_line(error.what())));
  }
}

}  // namespace sinter::frontend
