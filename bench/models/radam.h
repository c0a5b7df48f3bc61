#pragma once

#include <torch/optim/optimizer.h>

#include <vector>

namespace sinter::bench {

struct RAdamOptions : public torch::optim::OptimizerCloneableOptions<RAdamOptions> {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;

  [[nodiscard]] double get_lr() const override { return lr; }
  void set_lr(double value) override { lr = value; }
};

/// Liu et al., On the Variance of the Adaptive Learning Rate and Beyond: Adam whose first steps are steps of momentum,
/// and whose later ones grow as the estimate of the variance becomes certain. The results are those of
/// torch.optim.RAdam. LibTorch has no such optimizer: this is one that a program would bring along, a loop over
/// parameters with the rectification and its branch on the host.
class RAdam : public torch::optim::Optimizer {
 public:
  explicit RAdam(std::vector<at::Tensor> parameters, RAdamOptions defaults = {});

  at::Tensor step(LossClosure closure = nullptr) override;
};

}  // namespace sinter::bench
