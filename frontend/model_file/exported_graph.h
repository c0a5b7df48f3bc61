#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// What models/model.json of a `.pt2` file says, as torch.export.save writes it. Source: the schema that PyTorch keeps
/// in torch/_export/serde/schema.py, major version 8.
namespace sinter::frontend {

struct ExportedGraph;

/// A value of the graph by number: an input, or what a node gives.
struct Slot {
  uint32_t index = 0;
};

/// An argument of a node: a constant, a value, a list of arguments or a graph to call.
struct ExportedArgument {
  using List = std::vector<ExportedArgument>;
  std::variant<c10::IValue, Slot, List, std::shared_ptr<const ExportedGraph>> value;

  [[nodiscard]] const Slot* slot() const { return std::get_if<Slot>(&value); }
  [[nodiscard]] const List* list() const { return std::get_if<List>(&value); }
  [[nodiscard]] const c10::IValue* constant() const { return std::get_if<c10::IValue>(&value); }
};

/// Calls visit(slot) for every value in an argument.
template <class Visit>
void for_each_slot(const ExportedArgument& argument, const Visit& visit) {
  if (const Slot* slot = argument.slot()) visit(*slot);
  if (const auto* items = argument.list()) {
    for (const ExportedArgument& item : *items) for_each_slot(item, visit);
  }
}

template <class Visit>
void for_each_slot(std::span<const ExportedArgument> arguments, const Visit& visit) {
  for (const ExportedArgument& argument : arguments) for_each_slot(argument, visit);
}

struct NamedArgument {
  std::string name;  ///< of the operator's schema; empty for higher-order operators
  ExportedArgument argument;
};

/// One operator call.
struct ExportedNode {
  std::string target;  ///< "torch.ops.aten.add.Tensor", "_operator.mul"
  std::vector<NamedArgument> inputs;
  std::vector<ExportedArgument> outputs;  ///< slots and lists of slots
  std::string module;                     ///< "layer1.0.bn1"
  std::string place;                      ///< "resnet.py:58"
};

/// a * symbol + b, or a plain number where there is no symbol.
struct AffineSize {
  std::string symbol;
  int64_t factor = 0;
  int64_t offset = 0;
};

/// What a file says about a tensor.
struct ExportedMeta {
  at::ScalarType dtype = at::kFloat;
  at::Device device{at::kCPU};
  std::vector<std::optional<AffineSize>> sizes;  ///< nothing: an expression that is not affine in one symbol
  std::vector<int64_t> hints;                    ///< the sizes of the example that was exported
};

struct ExportedGraph {
  std::vector<ExportedArgument> inputs;  ///< slots, and constants where an input is always the same
  std::vector<ExportedArgument> outputs;
  std::vector<ExportedNode> nodes;
  std::vector<std::string> names;                  ///< by slot
  std::vector<std::optional<ExportedMeta>> metas;  ///< by slot; of tensors
};

enum class InputKind : uint8_t { user, parameter, buffer, constant_tensor, constant };

/// Where an input of the outermost graph comes from.
struct InputSpec {
  InputKind kind = InputKind::user;
  std::string name;  ///< of the parameter, buffer or constant
};

enum class OutputKind : uint8_t { user, buffer, parameter, user_input };

/// Where a result of the outermost graph goes: to the caller, or into what it replaces.
struct OutputSpec {
  OutputKind kind = OutputKind::user;
  std::string name;  ///< of the buffer, parameter or input
};

struct SymbolRange {
  std::optional<int64_t> least, most;
};

struct ExportedFile {
  ExportedGraph graph;
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  std::string input_tree, output_tree;      ///< pytrees, as JSON
  std::vector<std::string> argument_names;  ///< of forward
  std::vector<std::pair<std::string, SymbolRange>> ranges;
  std::string root;  ///< class of the module that was exported: "Net"
};

/// Parses models/model.json. Throws UserError, naming `path`, for another schema version and for anything that is not
/// as the schema says.
[[nodiscard]] ExportedFile parse_exported(const std::string& path, const std::string& json);

/// Tensor metadata as weights and values carry it.
[[nodiscard]] ExportedMeta parse_meta(const nlohmann::json& json);
/// Strides and storage offset of a stored tensor.
[[nodiscard]] std::vector<int64_t> parse_static(const nlohmann::json& sizes);

/// PyTorch's serialised numbers. Throw std::out_of_range for numbers that LibTorch has no type for.
[[nodiscard]] at::ScalarType exported_dtype(int64_t number);

/// An expression of sizes as sympy prints it ("Add(Mul(Integer(2), Symbol('s0', ...)), Integer(1))"), where it is
/// affine in at most one symbol.
[[nodiscard]] std::optional<AffineSize> parse_affine(std::string_view text);

}  // namespace sinter::frontend
