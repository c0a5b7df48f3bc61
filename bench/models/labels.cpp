#include "bench/models/labels.h"

#include <algorithm>
#include <array>

#include "bench/models/model.h"

namespace sinter::bench {
namespace {

struct Row {
  std::string_view model;
  Labels labels;
};

constexpr std::array rows = {
    Row{"gelu", {}}, Row{"gelu_mlp", {768}}, Row{"lstm", {256, 2}}, Row{"gpt", {8192, 2}}, Row{"moe", {512, 2}},
};

/// Of torchvision's models: ImageNet's classes, one for an image.
constexpr Labels images = {1000};

}  // namespace

Labels labels_of(std::string_view model) {
  const ModelRow& known = find_model(model);
  const auto found = std::ranges::find(rows, known.name, &Row::model);
  return found == rows.end() ? images : found->labels;
}

}  // namespace sinter::bench
