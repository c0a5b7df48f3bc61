#include "frontend/torch/modules.h"

#include <torch/nn/module.h>

namespace sinter::frontend {
namespace {

std::string join(const std::string& prefix, const std::string& name) {
  if (prefix.empty() || name.empty()) return prefix + name;
  return prefix + "." + name;
}

void add(std::vector<NamedTensor>& out, const std::string& prefix,
         const torch::OrderedDict<std::string, at::Tensor>& tensors) {
  for (const auto& item : tensors) {
    if (!item.value().defined()) continue;
    const auto name = join(prefix, item.key());
    const auto dot = name.rfind('.');
    out.push_back({name, dot == std::string::npos ? std::string() : name.substr(0, dot), weaken(item.value())});
  }
}

}  // namespace

std::string class_name(const torch::nn::Module& module) {
  auto name = module.name();
  if (const auto colon = name.rfind("::"); colon != std::string::npos) name.erase(0, colon + 2);
  if (name.size() > 4 && name.ends_with("Impl")) name.erase(name.size() - 4);
  return name;
}

std::vector<NamedTensor> named_tensors(const std::vector<NamedModule>& modules) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, module] : modules) {
    add(tensors, name, module->named_parameters());
    add(tensors, name, module->named_buffers());
  }
  return tensors;
}

}  // namespace sinter::frontend
