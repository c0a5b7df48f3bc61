#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "bench/models/model.h"
#include "bench/models/zoo.h"
#include "compiler/support/errors.h"

namespace sinter::bench {

std::span<const ModelRow> models() {
  static const std::array<ModelRow, 11> rows{{
      {"gelu", "x * 0.5 * (1 + erf(x / 1.41421)) over one tensor", {"f32[4096,4096]"}, make_gelu},
      {"gelu_mlp", "linear 768-3072, GELU, linear 3072-768", {"f32[128,768]"}, make_gelu_mlp},
      {"resnet50", "ResNet-50 with torchvision's parameter names", {"f32[1,3,224,224]"}, make_resnet50},
      {"vgg16", "VGG-16 with torchvision's parameter names", {"f32[1,3,224,224]"}, make_vgg16, {{"hidden", 4096}}},
      {"vit_b16",
       "ViT-B/16 with torchvision's parameter names",
       {"f32[1,3,224,224]"},
       make_vit_b16,
       {{"depth", 12}, {"image_size", 224}, {"patch_dropout", 0}, {"patch_indexing", 0}}},
      {"swin_t",
       "Swin-T with torchvision's parameter names",
       {"f32[1,3,224,224]"},
       make_swin_t,
       {{"depth", 6}, {"width", 96}}},
      {"swin_b",
       "Swin-B with torchvision's parameter names",
       {"f32[1,3,224,224]"},
       make_swin_b,
       {{"depth", 18}, {"width", 128}}},
      {"convnext_l",
       "ConvNeXt-L with torchvision's parameter names",
       {"f32[1,3,224,224]"},
       make_convnext_l,
       {{"depth", 27}, {"width", 192}}},
      {"lstm", "LSTM 256-512 and a linear layer", {"f32[1,64,256]"}, make_lstm, {{"layers", 2}}},
      {"gpt", "a small GPT-2 with a KV cache", {"i64[1,64]<8192"}, make_gpt, {{"depth", 6}, {"steps", 4}}},
      {"moe", "a mixture-of-experts layer, two choices a token", {"f32[1,256,512]"}, make_moe, {{"experts", 8}}},
  }};
  return rows;
}

const ModelRow& find_model(std::string_view name) {
  std::string known;
  for (const ModelRow& row : models()) {
    if (row.name == name) return row;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw UserError("model '" + std::string(name) + "' is unknown. Known: " + known);
}

Setting parse_setting(std::string_view text) {
  const size_t equals = text.find('=');
  Setting setting{.name = std::string(text.substr(0, equals))};
  const char* end = text.data() + text.size();
  const char* number = equals == std::string_view::npos ? end : text.data() + equals + 1;
  const auto parsed = std::from_chars(number, end, setting.value);
  if (setting.name.empty() || parsed.ec != std::errc() || parsed.ptr != end) {
    throw UserError("setting '" + std::string(text) + "' is not a name and a number. Example: depth=2");
  }
  return setting;
}

Model build(const ModelRow& row, const Settings& changed) {
  Settings settings = row.settings;
  for (const Setting& change : changed) {
    const auto known = std::ranges::find(settings, change.name, &Setting::name);
    if (known == settings.end()) {
      std::string names;
      for (const Setting& setting : row.settings) names += (names.empty() ? "" : ", ") + setting.name;
      throw UserError("model '" + std::string(row.name) + "' has no setting '" + change.name +
                      "'. Known: " + (names.empty() ? "none" : names));
    }
    known->value = change.value;
  }
  Model model = row.make(settings);
  model.settings = std::move(settings);
  return model;
}

void convert(torch::nn::Module& module, at::ScalarType dtype) {
  std::vector<std::pair<at::Tensor, at::Tensor>> kept;
  for (const at::Tensor& buffer : module.buffers()) {
    if (!buffer.is_floating_point()) kept.emplace_back(buffer, buffer.detach());
  }
  module.to(dtype);
  for (auto& [buffer, values] : kept) buffer.set_data(values);
}

Model in_float64(const ModelRow& row, const Model& model) {
  Model twin = build(row, model.settings);
  if (!model.module) return twin;
  torch::NoGradGuard no_grad;
  auto copy = [](const auto& from, auto to) {
    for (const auto& item : from) to[item.key()].set_data(item.value().detach().clone());
  };
  copy(model.module->named_parameters(), twin.module->named_parameters());
  copy(model.module->named_buffers(), twin.module->named_buffers());
  convert(*twin.module, at::kDouble);
  twin.module->train(model.module->is_training());
  return twin;
}

}  // namespace sinter::bench
