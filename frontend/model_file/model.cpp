#include "sinter/model.h"

#include <torch/nn/module.h>

#include <fstream>
#include <iterator>

#include "compiler/support/errors.h"
#include "frontend/model_file/archive.h"
#include "frontend/model_file/exported_program.h"
#include "frontend/model_file/exported_tensors.h"
#include "frontend/model_file/script_program.h"
#include "frontend/model_file/zip_directory.h"

namespace sinter {
namespace {

/// A part of a model under which tensors are registered; its train flag is the program's own, where that has one.
class Part : public torch::nn::Module {
 public:
  [[nodiscard]] bool is_training() const noexcept override { return flag_ ? flag_() : false; }

  void follow(std::function<bool()> flag) { flag_ = std::move(flag); }

  /// The part at a path such as "layer1.0", made where it is missing.
  Part& at(const std::string& path) {
    if (path.empty()) return *this;
    const std::string first = path.substr(0, path.find('.'));
    auto found = parts_.find(first);
    if (found == parts_.end()) found = parts_.emplace(first, register_module(first, std::make_shared<Part>())).first;
    return found->second->at(first.size() == path.size() ? "" : path.substr(first.size() + 1));
  }

  void add(const std::string& name, const frontend::FileTensor& item) {
    if (item.is_parameter && item.tensor.is_floating_point()) {
      register_parameter(name, item.tensor, item.tensor.requires_grad());
    } else {
      register_buffer(name, item.tensor);
    }
  }

 private:
  std::map<std::string, std::shared_ptr<Part>> parts_;
  std::function<bool()> flag_;
};

std::shared_ptr<frontend::FileProgram> read(const std::string& path) {
  frontend::Archive archive(path);
  switch (kind_of(archive)) {
    case frontend::ArchiveKind::exported:
      return read_exported(archive);
    case frontend::ArchiveKind::script:
      return read_script(archive);
    case frontend::ArchiveKind::pickle:
      throw UserError(path + ": tensors that torch.save wrote, not a model; save the model with torch.export.save");
    case frontend::ArchiveKind::other:
      break;
  }
  throw UserError(path + ": a zip archive, but neither torch.export.save nor torch.jit.save wrote it");
}

}  // namespace

Model::Model(const std::filesystem::path& file) : program_(read(file.string())) {}
Model::Model(const torch::jit::Module& module) : program_(frontend::wrap_script(module)) {}

Model& Model::to(at::Device device) {
  program_->to(device);
  return *this;
}

Model& Model::to(at::ScalarType dtype) {
  program_->to(dtype);
  return *this;
}

c10::IValue Model::forward(std::vector<c10::IValue> positional, Kwargs named) const {
  return program_->run({std::move(positional), std::move(named.values)});
}

c10::IValue read_saved(const std::filesystem::path& file) {
  const std::string path = file.string();
  (void)frontend::read_zip_directory(path);
  std::ifstream stream(file, std::ios::binary);
  return frontend::read_pickle(path, {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()});
}

std::string Model::name() const { return program_->name(); }

std::shared_ptr<torch::nn::Module> Model::module() const {
  auto root = std::make_shared<Part>();
  for (auto& [path, flag] : program_->train_flags()) root->at(path).follow(std::move(flag));
  for (const frontend::FileTensor& item : program_->tensors()) {
    const size_t dot = item.name.rfind('.');
    const std::string path = dot == std::string::npos ? "" : item.name.substr(0, dot);
    root->at(path).add(dot == std::string::npos ? item.name : item.name.substr(dot + 1), item);
  }
  return root;
}

std::optional<std::pair<std::vector<c10::IValue>, Kwargs>> Model::example() const {
  auto example = program_->example();
  if (!example) return std::nullopt;
  return std::pair{std::move(example->positional), Kwargs{std::move(example->named)}};
}

}  // namespace sinter
