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

/// A number that a model's builder takes by name, such as depth=2.
struct Setting {
  std::string name;
  double value = 0;
};
using Settings = std::vector<Setting>;

/// A program the command can run by name: a module (or none) and a function over its tensor inputs.
struct Model {
  std::shared_ptr<torch::nn::Module> module;  ///< null for a plain function
  std::function<at::Tensor(const std::vector<at::Tensor>&)> forward;
  Settings settings = {};  ///< what it was built with
};

/// One built-in model.
struct ModelRow {
  std::string_view name;
  std::string_view summary;
  std::vector<std::string> inputs;  ///< input specifications at batch 1, "f32[1,3,224,224]"; dim 0 is the batch
  Model (*make)(const Settings&);   ///< takes every setting of the row; build() calls it
  Settings settings = {};           ///< what can be set, and to what it is set otherwise
};

[[nodiscard]] std::span<const ModelRow> models();

/// The row of that name. Throws UserError listing the known names.
[[nodiscard]] const ModelRow& find_model(std::string_view name);

/// "depth=2" as a setting. Throws UserError where there is no name or no number.
[[nodiscard]] Setting parse_setting(std::string_view text);

/// The model of that row, float32 on the CPU, freshly initialised from LibTorch's generator, in eval mode. Throws
/// UserError for a setting that the row does not have.
[[nodiscard]] Model build(const ModelRow& row, const Settings& changed = {});

/// Converts the floating-point parameters and buffers, as Python's Module.to does; LibTorch's converts integers as
/// well, and an index would no longer be one.
void convert(torch::nn::Module& module, at::ScalarType dtype);

/// A second instance with the same parameters and buffers as `model`, converted to float64.
[[nodiscard]] Model in_float64(const ModelRow& row, const Model& model);

}  // namespace sinter::bench
