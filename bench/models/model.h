#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sinter::bench {

/// A program the command can run by name: a module (or none) and a function over its tensor inputs.
struct Model {
  std::shared_ptr<torch::nn::Module> module;  ///< null for a plain function
  std::function<at::Tensor(const std::vector<at::Tensor>&)> forward;
};

/// One built-in model.
struct ModelRow {
  std::string_view name;
  std::string_view summary;
  std::vector<std::string> inputs;  ///< input specifications at batch 1, "f32[1,3,224,224]"; dim 0 is the batch
  Model (*make)();                  ///< float32 on the CPU, freshly initialised from LibTorch's generator, in eval mode
};

[[nodiscard]] std::span<const ModelRow> models();

/// The row of that name. Throws UserError listing the known names.
[[nodiscard]] const ModelRow& find_model(std::string_view name);

/// A second instance with the same parameters and buffers as `model`, converted to float64.
[[nodiscard]] Model in_float64(const ModelRow& row, const Model& model);

}  // namespace sinter::bench
