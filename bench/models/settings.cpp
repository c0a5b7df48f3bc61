#include <torch/nn/init.h>

#include <algorithm>
#include <cmath>

#include "bench/models/zoo.h"
#include "compiler/support/errors.h"

namespace sinter::bench {

double value_of(const Settings& settings, std::string_view name) {
  const auto found = std::ranges::find(settings, name, &Setting::name);
  if (found == settings.end()) throw InternalError("models", "no row has the setting '" + std::string(name) + "'");
  return found->value;
}

int64_t integer_of(const Settings& settings, std::string_view name) {
  const double value = value_of(settings, name);
  constexpr double most = 1 << 30;
  if (value < 0 || value > most || value != std::floor(value)) {
    throw UserError("setting '" + std::string(name) + "' is not a whole number from 0 on");
  }
  return static_cast<int64_t>(value);
}

void randomise(torch::nn::Module& module) {
  torch::NoGradGuard no_grad;
  for (const auto& item : module.named_parameters()) {
    const at::Tensor& parameter = item.value();
    if (parameter.dim() >= 2) {
      const double fan_in = static_cast<double>(parameter.numel()) / static_cast<double>(parameter.size(0));
      parameter.normal_(0, 1 / std::sqrt(fan_in));
    } else if (item.key().ends_with("weight")) {
      parameter.uniform_(0.5, 1);
    } else {
      parameter.uniform_(-0.1, 0.1);
    }
  }
}

}  // namespace sinter::bench
