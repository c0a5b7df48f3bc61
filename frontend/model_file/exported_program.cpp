#include "frontend/model_file/exported_program.h"

#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "compiler/support/errors.h"
#include "frontend/model_file/archive.h"
#include "frontend/model_file/exported_graph.h"
#include "frontend/model_file/exported_tensors.h"
#include "frontend/model_file/graph_runner.h"
#include "frontend/model_file/input_check.h"
#include "frontend/model_file/pytree.h"

namespace sinter::frontend {
namespace {

using Values = std::vector<c10::IValue>;

class ExportedProgram : public FileProgram {
 public:
  ExportedProgram(ExportedFile file, GraphRunner runner, ExportedTensors tensors, const std::string& path,
                  std::optional<FileArguments> saved)
      : file_(std::move(file)),
        runner_(std::move(runner)),
        input_tree_(parse_pytree(path, file_.input_tree)),
        output_tree_(parse_pytree(path, file_.output_tree)),
        check_(file_),
        saved_(std::move(saved)) {
    collect(tensors, path);
  }

  c10::IValue run(const FileArguments& arguments) override {
    called_ = true;
    const Values given = leaves_of(arguments);
    check_.check(given, dtype_);
    Values inputs(file_.inputs.size());
    size_t next = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool given_here = file_.inputs[i].kind == InputKind::user || file_.inputs[i].kind == InputKind::constant;
      if (given_here) inputs[i] = given[next++];
      if (tensor_of_input_[i]) inputs[i] = tensors_[*tensor_of_input_[i]].tensor;
    }
    const Values kept = inputs;
    Values results;
    try {
      results = runner_.run(std::move(inputs), move_);
    } catch (const std::invalid_argument& error) {
      throw UserError(error.what());
    }
    return results_of(std::move(results), kept);
  }

  void to(at::Device device) override {
    check_fresh();
    for (FileTensor& item : tensors_) item.tensor = item.tensor.to(device);
    move_.to = device;
    runner_.keep_constants(move_);
    move_example(saved_, device, std::nullopt);
  }

  void to(at::ScalarType dtype) override {
    check_fresh();
    if (!move_.from_dtype) move_.from_dtype = dtype_of_parameters();
    // What computes wider than the model on purpose stays as wide.
    const bool widens = move_.from_dtype && c10::elementSize(dtype) > c10::elementSize(*move_.from_dtype);
    move_.to_dtype = widens ? std::optional(dtype) : std::nullopt;
    for (FileTensor& item : tensors_) {
      if (item.tensor.is_floating_point()) item.tensor = item.tensor.to(dtype);
    }
    dtype_ = dtype;
    runner_.keep_constants(move_);
    move_example(saved_, std::nullopt, dtype);
  }

  [[nodiscard]] std::vector<FileTensor> tensors() const override { return tensors_; }
  [[nodiscard]] std::string name() const override { return file_.root; }

  [[nodiscard]] std::optional<FileArguments> example() const override {
    if (saved_) return saved_;
    Values leaves;
    for (size_t i = 0; i < file_.inputs.size(); ++i) {
      const ExportedArgument& input = file_.graph.inputs[i];
      if (file_.inputs[i].kind == InputKind::constant) leaves.push_back(*input.constant());
      if (file_.inputs[i].kind != InputKind::user) continue;
      const auto& meta = input.slot() != nullptr ? file_.graph.metas[input.slot()->index] : std::nullopt;
      if (!meta) return std::nullopt;
      leaves.push_back(drawn(*meta));
    }
    return arguments_of(unflatten(input_tree_, std::move(leaves)));
  }

 private:
  void check_fresh() const {
    if (called_) throw UserError("to: the model has been called; move or convert it before its first call");
  }

  /// The one floating-point dtype of all parameters that have such a one.
  [[nodiscard]] std::optional<at::ScalarType> dtype_of_parameters() const {
    std::optional<at::ScalarType> dtype;
    for (const FileTensor& item : tensors_) {
      if (!item.is_parameter || !item.tensor.is_floating_point()) continue;
      if (dtype && *dtype != item.tensor.scalar_type()) return std::nullopt;
      dtype = item.tensor.scalar_type();
    }
    return dtype;
  }

  /// Finds the tensor of every input that is not the caller's.
  void collect(const ExportedTensors& stored, const std::string& path) {
    tensor_of_input_.resize(file_.inputs.size());
    for (size_t i = 0; i < file_.inputs.size(); ++i) {
      const InputSpec& spec = file_.inputs[i];
      if (spec.kind == InputKind::user || spec.kind == InputKind::constant) continue;
      const auto weight = stored.weights.find(spec.name);
      const auto constant = stored.constants.find(spec.name);
      if (weight == stored.weights.end() && constant == stored.constants.end()) {
        throw UserError(fmt::format("{}: damaged: the tensor '{}' is missing", path, spec.name));
      }
      const at::Tensor& tensor = weight != stored.weights.end() ? weight->second : constant->second;
      const auto* slot = file_.graph.inputs[i].slot();
      const auto meta = slot != nullptr ? file_.graph.metas[slot->index] : std::nullopt;
      if (meta && (tensor.sizes() != c10::IntArrayRef(meta->hints) || tensor.scalar_type() != meta->dtype)) {
        throw UserError(fmt::format("{}: damaged: the tensor '{}' is {} {}, the graph expects {} {}", path, spec.name,
                                    c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), "x"),
                                    c10::toString(meta->dtype), fmt::join(meta->hints, "x")));
      }
      tensor_of_input_[i] = tensors_.size();
      tensors_.push_back({spec.name, tensor, spec.kind == InputKind::parameter});
      if (meta) move_.from = move_.to = meta->device;
    }
    if (!move_.to.is_cpu()) move_.to = at::kCPU;  // tensors are read to the CPU
  }

  /// The caller's values in the order of the graph's inputs. An argument that was exported as a constant may be left
  /// out.
  [[nodiscard]] Values leaves_of(const FileArguments& arguments) const {
    const Pytree& positional = input_tree_.children.at(0);
    const Pytree& named = input_tree_.children.at(1);
    Values leaves;
    const auto add = [&](const Pytree& tree, const c10::IValue* value, const std::string& place) {
      if (value != nullptr) return flatten_along(tree, *value, place, leaves);
      const auto constants = check_.constants(leaves.size(), tree.leaves());
      if (!constants) throw std::invalid_argument(place + " is missing");
      leaves.insert(leaves.end(), constants->begin(), constants->end());
    };
    try {
      check_names(arguments, positional.children.size(), named.keys);
      for (size_t i = 0; i < positional.children.size(); ++i) {
        const bool given = i < arguments.positional.size();
        add(positional.children[i], given ? &arguments.positional[i] : nullptr, place_of(i));
      }
      for (size_t i = 0; i < named.keys.size(); ++i) {
        const auto found = arguments.named.find(named.keys[i]);
        const bool given = found != arguments.named.end();
        add(named.children[i], given ? &found->second : nullptr, "argument '" + named.keys[i] + "'");
      }
    } catch (const std::invalid_argument& error) {
      throw UserError(fmt::format("{}: {}", file_.root, error.what()));
    }
    return leaves;
  }

  [[nodiscard]] std::string place_of(size_t position) const {
    if (position >= file_.argument_names.size()) return fmt::format("argument {}", position);
    return fmt::format("argument {} ({})", position, file_.argument_names[position]);
  }

  static void check_names(const FileArguments& arguments, size_t positions, const std::vector<std::string>& names) {
    if (arguments.positional.size() > positions) {
      throw std::invalid_argument(
          fmt::format("it takes {} argument(s), {} given", positions, arguments.positional.size()));
    }
    for (const auto& [name, value] : arguments.named) {
      if (std::ranges::find(names, name) != names.end()) continue;
      throw std::invalid_argument(fmt::format("it has no argument named '{}'", name));
    }
  }

  [[nodiscard]] FileArguments arguments_of(const c10::IValue& both) const {
    const auto& parts = both.toTupleRef().elements();
    FileArguments arguments;
    const auto positional = parts[0].toTupleRef().elements().vec();
    arguments.positional.assign(positional.begin(), positional.end());
    if (parts[1].isGenericDict()) {
      for (const auto& item : parts[1].toGenericDict()) {
        arguments.named.emplace(item.key().toStringRef(), item.value());
      }
    }
    return arguments;
  }

  /// Writes what the program replaces, and gives the caller the rest.
  [[nodiscard]] c10::IValue results_of(Values results, const Values& inputs) const {
    Values leaves;
    for (size_t i = 0; i < results.size(); ++i) {
      const OutputSpec& spec = file_.outputs[i];
      if (spec.kind == OutputKind::user) {
        leaves.push_back(std::move(results[i]));
        continue;
      }
      const at::Tensor target = target_of(spec, inputs);
      if (!target.is_same(results[i].toTensor())) target.copy_(results[i].toTensor());
    }
    if (leaves.size() != output_tree_.leaves()) throw UserError(file_.root + ": its results do not fit its containers");
    return unflatten(output_tree_, std::move(leaves));
  }

  [[nodiscard]] at::Tensor target_of(const OutputSpec& spec, const Values& inputs) const {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Slot* slot = file_.graph.inputs[i].slot();
      const bool is_input = spec.kind == OutputKind::user_input;
      const bool named = slot != nullptr && is_input && file_.graph.names[slot->index] == spec.name;
      if (named || (!is_input && file_.inputs[i].name == spec.name)) return inputs[i].toTensor();
    }
    throw UserError(fmt::format("{}: it writes to '{}', which it does not have", file_.root, spec.name));
  }

  [[nodiscard]] at::Tensor drawn(const ExportedMeta& meta) const {
    const bool is_float = at::isFloatingType(meta.dtype);
    if (is_float) return at::randn(meta.hints, at::kFloat).to(move_.to, dtype_.value_or(meta.dtype));
    return at::randint(2, meta.hints, at::kLong).to(move_.to, meta.dtype);
  }

  static void move_example(std::optional<FileArguments>& example, std::optional<at::Device> device,
                           std::optional<at::ScalarType> dtype) {
    if (!example) return;
    for (c10::IValue& value : example->positional) value = map_tensors(value, device, dtype);
    for (auto& [name, value] : example->named) value = map_tensors(value, device, dtype);
  }

  ExportedFile file_;
  GraphRunner runner_;
  Pytree input_tree_, output_tree_;
  InputCheck check_;
  std::optional<FileArguments> saved_;
  std::vector<FileTensor> tensors_;
  std::vector<std::optional<size_t>> tensor_of_input_;
  ModelMove move_;
  std::optional<at::ScalarType> dtype_;
  std::atomic<bool> called_{false};
};

GraphRunner bind_graph(const std::string& path, const ExportedGraph& graph) {
  try {
    return GraphRunner(graph);
  } catch (const UnknownOperators& unknown) {
    throw UserError(fmt::format("{}: cannot be run here: {}", path, fmt::join(unknown.reasons(), "; ")));
  }
}

/// The name of the model in the archive: "model" of models/model.json.
std::string model_name(const Archive& archive) {
  std::vector<std::string> names;
  for (const std::string& name : archive.names()) {
    if (name.starts_with("models/") && name.ends_with(".json")) names.push_back(name.substr(7, name.size() - 12));
  }
  if (names.size() == 1) return names.front();
  if (std::ranges::find(names, "model") != names.end()) return "model";
  throw UserError(fmt::format("{}: it holds several models ({}); save each in a file of its own", archive.path(),
                              fmt::join(names, ", ")));
}

/// Arguments that were saved with the model, if they were: (args, kwargs).
std::optional<FileArguments> saved_arguments(Archive& archive, const std::string& model) {
  const std::string file = "data/sample_inputs/" + model + ".pt";
  if (!archive.has(file)) return std::nullopt;
  try {
    const c10::IValue value = read_pickle(file, archive.text(file));
    const auto& parts = value.toTupleRef().elements();
    if (parts.size() != 2 || !parts[0].isTuple() || !parts[1].isGenericDict()) return std::nullopt;
    FileArguments arguments;
    for (const c10::IValue& item : parts[0].toTupleRef().elements()) arguments.positional.push_back(item);
    for (const auto& item : parts[1].toGenericDict()) arguments.named.emplace(item.key().toStringRef(), item.value());
    return arguments;
  } catch (const std::exception&) {
    return std::nullopt;  // an example of types that only Python has
  }
}

}  // namespace

std::unique_ptr<FileProgram> read_exported(Archive& archive) {
  const std::string& path = archive.path();
  const std::string model = model_name(archive);
  ExportedFile file = parse_exported(path, archive.text("models/" + model + ".json"));
  GraphRunner runner = bind_graph(path, file.graph);
  ExportedTensors tensors = read_exported_tensors(archive, model);
  return std::make_unique<ExportedProgram>(std::move(file), std::move(runner), std::move(tensors), path,
                                           saved_arguments(archive, model));
}

}  // namespace sinter::frontend
