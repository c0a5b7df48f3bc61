#include <array>
#include <string>

#include "bench/models/model.h"
#include "bench/models/zoo.h"
#include "compiler/support/errors.h"

namespace sinter::bench {

std::span<const ModelRow> models() {
  static const std::array<ModelRow, 3> rows{{
      {"gelu", "x * 0.5 * (1 + erf(x / 1.41421)) over one tensor", {"f32[4096,4096]"}, make_gelu},
      {"gelu_mlp", "linear 768-3072, GELU, linear 3072-768", {"f32[128,768]"}, make_gelu_mlp},
      {"resnet50", "ResNet-50 with torchvision's parameter names", {"f32[1,3,224,224]"}, make_resnet50},
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

Model in_float64(const ModelRow& row, const Model& model) {
  Model twin = row.make();
  if (!model.module) return twin;
  torch::NoGradGuard no_grad;
  auto copy = [](const auto& from, auto to) {
    for (const auto& item : from) to[item.key()].set_data(item.value().detach().clone());
  };
  copy(model.module->named_parameters(), twin.module->named_parameters());
  copy(model.module->named_buffers(), twin.module->named_buffers());
  twin.module->to(torch::kFloat64);
  twin.module->train(model.module->is_training());
  return twin;
}

}  // namespace sinter::bench
