#include "frontend/modules.h"

#include <torch/nn/cloneable.h>
#include <torch/nn/module.h>

#include <algorithm>

#include "compiler/support/planted.h"
#include "frontend/tensor_memory.h"

/// Module tells its train flag through a virtual function only; its friends may look at it.
template <>
class torch::nn::Cloneable<sinter::frontend::TrainFlags> {
 public:
  static const bool* train_flag(const torch::nn::Module& module) { return &module.is_training_; }
};

namespace sinter::frontend {
namespace {

/// True when `is_training` gives the member of Module, so that no class has put a function of its own in its place. The
/// function that a virtual call would reach is told by an extension of GCC ("bound member functions").
bool tells_its_member([[maybe_unused]] const torch::nn::Module& module) {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wpmf-conversions"
  using IsTraining = bool (*)(const torch::nn::Module*);
  const auto function_of = [](const torch::nn::Module& m) {
    return (IsTraining)(m.*(&torch::nn::Module::is_training));
  };
#pragma GCC diagnostic pop
  static const torch::nn::Module plain;
  return function_of(module) == function_of(plain);
#else
  return false;
#endif
}

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

const char* word(bool training) { return training ? "train" : "eval"; }

}  // namespace

std::string class_name(const torch::nn::Module& module) {
  auto name = module.name();
  if (const auto colon = name.rfind("::"); colon != std::string::npos) name.erase(0, colon + 2);
  if (name.size() > 4 && name.ends_with("Impl")) name.erase(name.size() - 4);
  return name;
}

const bool* train_flag_of(const torch::nn::Module& module) {
  return tells_its_member(module) ? torch::nn::Cloneable<TrainFlags>::train_flag(module) : nullptr;
}

std::vector<NamedTensor> named_tensors(const std::vector<NamedModule>& modules) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, module] : modules) {
    add(tensors, name, module->named_parameters());
    add(tensors, name, module->named_buffers());
  }
  return tensors;
}

TrainFlags::TrainFlags(const std::vector<NamedModule>& modules, const PrivateLayout& layout) {
  for (const auto& [name, root] : modules) {
    for (const auto& item : root->named_modules()) {
      const auto& module = item.value();
      flags_.push_back({module, layout.train_flags ? train_flag_of(*module) : nullptr, module->is_training()});
      names_.push_back(join(name, item.key()));
    }
  }
}

bool TrainFlags::hold() const {
  if (planted(Bug::train_flags_not_guarded)) return true;
  return std::ranges::all_of(flags_, [](const Flag& flag) {
    if (flag.module.expired()) return false;
    return flag.member != nullptr ? *flag.member == flag.training : flag.holds_as_told();
  });
}

bool TrainFlags::Flag::holds_as_told() const {
  const auto locked = module.lock();
  return locked != nullptr && locked->is_training() == training;
}

bool TrainFlags::lost() const {
  return std::any_of(flags_.begin(), flags_.end(), [](const Flag& flag) { return flag.module.expired(); });
}

std::vector<GuardMiss> TrainFlags::misses() const {
  std::vector<GuardMiss> misses;
  for (size_t i = 0; i < flags_.size(); ++i) {
    const auto module = flags_[i].module.lock();
    const auto name = names_[i].empty() ? std::string("module") : "module " + names_[i];
    if (module == nullptr) {
      misses.push_back({name, "alive", "gone"});
    } else if (module->is_training() != flags_[i].training) {
      misses.push_back({name, word(flags_[i].training), word(module->is_training())});
    }
  }
  return misses;
}

std::vector<std::string> TrainFlags::describe() const {
  if (flags_.empty()) return {};
  const auto train = std::count_if(flags_.begin(), flags_.end(), [](const Flag& flag) { return flag.training; });
  return {std::to_string(flags_.size()) + " modules: " + std::to_string(train) + " in train mode, " +
          std::to_string(flags_.size() - static_cast<size_t>(train)) + " in eval mode"};
}

}  // namespace sinter::frontend
