#include "frontend/model_file/script_program.h"

#include <fmt/format.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <atomic>
#include <set>

#include "compiler/support/errors.h"
#include "compiler/support/first_line.h"
#include "frontend/model_file/archive.h"

namespace sinter::frontend {
namespace {

template <class Visit>
void for_each_constant(torch::jit::Block* block, const Visit& visit) {
  for (torch::jit::Node* node : block->nodes()) {
    if (node->kind() == c10::prim::Constant && node->hasAttribute(c10::attr::value)) visit(*node);
    for (torch::jit::Block* inner : node->blocks()) for_each_constant(inner, visit);
  }
}

/// True when the host reads what is computed from this value: sizes and scalars that a trace computed with tensors.
bool reaches_host(const torch::jit::Value* value, std::set<const torch::jit::Value*>& seen) {
  static const std::set<std::string_view> readers{"aten::Int",           "aten::Float",         "aten::Bool",
                                                  "aten::Complex",       "aten::item",          "aten::IntImplicit",
                                                  "aten::FloatImplicit", "aten::ScalarImplicit"};
  if (!seen.insert(value).second) return false;
  for (const torch::jit::Use& use : value->uses()) {
    if (readers.contains(use.user->kind().toQualString())) return true;
    for (const torch::jit::Value* result : use.user->outputs()) {
      if (result->type()->kind() == c10::TypeKind::TensorType && reaches_host(result, seen)) return true;
    }
  }
  return false;
}

/// True for a number that the host reads: it stays on the CPU, where reading it costs nothing.
bool is_host_number(const torch::jit::Node& node) {
  std::set<const torch::jit::Value*> seen;
  return node.t(c10::attr::value).dim() == 0 && reaches_host(node.output(), seen);
}

class ScriptProgram : public FileProgram {
 public:
  explicit ScriptProgram(torch::jit::Module module) : module_(std::move(module)) {}

  c10::IValue run(const FileArguments& arguments) override {
    called_ = true;
    torch::jit::GraphOptimizerEnabledGuard no_optimizer(false);
    const torch::jit::Kwargs named(arguments.named.begin(), arguments.named.end());
    return module_.forward(arguments.positional, named);
  }

  void to(at::Device device) override {
    check_fresh();
    const at::Device home = home_device();
    module_.to(device);
    for_each_constant([&](torch::jit::Node& node) {
      const bool is_device = node.output()->type()->kind() == c10::TypeKind::DeviceObjType;
      if (is_device && at::Device(node.s(c10::attr::value)).type() == home.type()) {
        node.s_(c10::attr::value, device.str());
      } else if (is_tensor(node) && !is_host_number(node)) {
        node.t_(c10::attr::value, node.t(c10::attr::value).to(device));
      }
    });
  }

  void to(at::ScalarType dtype) override {
    check_fresh();
    for (const FileTensor& item : tensors()) {  // Module::to would convert integers as well
      if (item.tensor.is_floating_point()) item.tensor.set_data(item.tensor.to(dtype));
    }
    for_each_constant([&](torch::jit::Node& node) {
      if (!is_tensor(node) || !node.t(c10::attr::value).is_floating_point()) return;
      const at::Tensor& constant = node.t(c10::attr::value);
      if (constant.dim() > 0) node.t_(c10::attr::value, constant.to(dtype));  // 0-dim ones are numbers
    });
  }

  [[nodiscard]] std::vector<FileTensor> tensors() const override {
    std::vector<FileTensor> tensors;
    for (const auto& parameter : module_.named_parameters()) tensors.push_back({parameter.name, parameter.value, true});
    for (const auto& buffer : module_.named_buffers()) tensors.push_back({buffer.name, buffer.value, false});
    return tensors;
  }

  [[nodiscard]] std::vector<std::pair<std::string, std::function<bool()>>> train_flags() const override {
    std::vector<std::pair<std::string, std::function<bool()>>> flags;
    for (const auto& item : module_.named_modules()) {
      const auto slot = item.value.type()->findAttributeSlot("training");
      if (!slot) continue;  // frozen
      flags.emplace_back(item.name,
                         [object = item.value._ivalue(), at = *slot] { return object->getSlot(at).toBool(); });
    }
    return flags;
  }

  [[nodiscard]] std::string name() const override {
    const auto type = module_.type()->name();
    return type ? type->name() : "module";
  }

  [[nodiscard]] std::optional<FileArguments> example() const override { return std::nullopt; }

 private:
  static bool is_tensor(const torch::jit::Node& node) {
    return node.kindOf(c10::attr::value) == torch::jit::AttributeKind::t;
  }

  void check_fresh() const {
    if (called_) throw UserError("to: the model has been called; move or convert it before its first call");
  }

  /// Where its tensors are.
  [[nodiscard]] at::Device home_device() const {
    for (const FileTensor& item : tensors()) return item.tensor.device();
    return at::kCPU;
  }

  template <class Visit>
  void for_each_constant(const Visit& visit) const {
    std::set<const torch::jit::Graph*> seen;
    for (const auto& module : module_.modules()) {
      for (const torch::jit::Method& method : module.get_methods()) {
        auto* function = torch::jit::tryToGraphFunction(method.function());
        if (function == nullptr || !seen.insert(function->graph().get()).second) continue;
        frontend::for_each_constant(function->graph()->block(), visit);
      }
    }
  }

  torch::jit::Module module_;
  std::atomic<bool> called_{false};
};

}  // namespace

std::unique_ptr<FileProgram> wrap_script(const torch::jit::Module& module) {
  return std::make_unique<ScriptProgram>(module);
}

std::unique_ptr<FileProgram> read_script(const Archive& archive) {
  try {
    return wrap_script(torch::jit::load(archive.path(), at::Device(at::kCPU)));
  } catch (const std::exception& error) {  // c10::Error and what its parser throws
    const auto* known = dynamic_cast<const c10::Error*>(&error);
    const std::string reason = known != nullptr ? known->what_without_backtrace() : error.what();
    const size_t start = reason.find_first_not_of("\n ");
    const std::string text = start == std::string::npos ? reason : reason.substr(start);
    throw UserError(
        fmt::format("{}: not a TorchScript model that this LibTorch can read: {}", archive.path(), first_line(text)));
  }
}

}  // namespace sinter::frontend
