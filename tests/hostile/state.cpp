#include "groups.h"
#include "programs.h"

/// Tensors that a callable owns or closes over, changed between its calls.
namespace sinter::test::hostile {
namespace {

using at::Tensor;

void a_weight_updated_in_place(Session& s) {
  auto layer = s.adopt(torch::nn::Linear(4, 3));
  auto f = s.compile(layer);
  const Tensor x = s.randn({2, 4});
  for (int call = 0; call < 9; ++call) {
    layer->weight.mul_(1.25);
    f(x);
  }
}

void a_weight_written_through_data(Session& s) {
  auto layer = s.adopt(torch::nn::Linear(4, 3));
  auto f = s.compile(layer);
  const Tensor x = s.randn({2, 4});
  for (int call = 0; call < 9; ++call) {
    layer->weight.data().fill_(call);
    f(x);
  }
}

void an_optimizer_step_between_calls(Session& s) {
  auto layer = s.adopt(torch::nn::Linear(4, 3));
  torch::optim::SGD optimizer(layer->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  auto f = s.compile(layer);
  const Tensor x = s.randn({2, 4});
  for (int call = 0; call < 9; ++call) {
    f(x);
    const at::AutoGradMode grad(true);
    optimizer.zero_grad();
    layer->forward(x).pow(2).sum().backward();
    optimizer.step();
  }
}

void a_weight_replaced_by_assignment(Session& s) {
  auto layer = s.adopt(torch::nn::Linear(4, 3));
  auto f = s.compile(layer);
  const Tensor x = s.randn({2, 4});
  for (int call = 0; call < 4; ++call) f(x);
  layer->weight = s.randn({3, 4});
  for (int call = 0; call < 4; ++call) f(x);
}

void a_weight_whose_data_is_replaced(Session& s) {
  auto layer = s.adopt(torch::nn::Linear(4, 3));
  auto f = s.compile(layer);
  const Tensor x = s.randn({2, 4});
  for (int call = 0; call < 4; ++call) f(x);
  layer->weight.set_data(s.randn({3, 4}));
  for (int call = 0; call < 4; ++call) f(x);
  layer->weight.set_data(s.randn({5, 4}));
  layer->bias.set_data(s.randn({5}));
  for (int call = 0; call < 4; ++call) f(x);
}

void two_weights_swapped(Session& s) {
  Tensor a = s.randn({4});
  Tensor b = s.randn({4});
  auto f = s.compile([&](const Tensor& x) { return x * a - b; });
  const Tensor x = s.randn({4});
  for (int call = 0; call < 3; ++call) f(x);
  std::swap(a, b);  // no reference is lost
  for (int call = 0; call < 9; ++call) f(x);
}

void a_closed_over_tensor_replaced_on_every_call(Session& s) {
  Tensor scale = s.randn({4});
  auto f = s.compile([&scale](const Tensor& x) { return x * scale; });
  for (int call = 0; call < 8; ++call) {
    f(s.randn({4}));
    scale = s.randn({4});
  }
}

void a_bias_that_comes_and_goes(Session& s) {
  Tensor bias;
  auto f = s.compile([&bias](const Tensor& x) { return bias.defined() ? x * 2 + bias : x * 2; });
  const Tensor x = s.randn({4});
  for (int call = 0; call < 3; ++call) f(x);
  bias = s.randn({4});
  for (int call = 0; call < 9; ++call) f(x);
}

void a_module_moved_to_another_dtype(Session& s) {
  auto layer = s.adopt(torch::nn::Linear(4, 3));
  auto f = s.compile(layer);
  for (int call = 0; call < 4; ++call) f(s.randn({2, 4}));
  layer->to(at::kDouble);
  for (int call = 0; call < 4; ++call) f(s.randn({2, 4}, at::kDouble));
}

void a_module_moved_to_another_device(Session& s) {
  auto layer = s.adopt(torch::nn::Linear(4, 3));
  auto f = s.compile(layer);
  layer->to(at::kCPU);
  const Tensor x = s.randn({2, 4});
  for (int call = 0; call < 4; ++call) f(x.cpu());
  layer->to(s.device());
  for (int call = 0; call < 4; ++call) f(x);
}

struct Gate : torch::nn::Module {
  Tensor forward(const Tensor& x) { return is_training() ? x * 2 : x - 1; }
};

struct Gated : torch::nn::Module {
  std::shared_ptr<Gate> gate = register_module("gate", std::make_shared<Gate>());
  Tensor forward(const Tensor& x) { return gate->forward(x) + 3; }
};

void a_submodule_switched_to_eval(Session& s) {
  const auto model = std::make_shared<Gated>();
  auto f = s.compile(model);
  const Tensor x = s.randn({4});
  for (int call = 0; call < 4; ++call) f(x);
  model->gate->eval();
  for (int call = 0; call < 4; ++call) f(x);
  model->gate->train();
  for (int call = 0; call < 4; ++call) f(x);
}

void a_submodule_replaced(Session& s) {
  torch::nn::Sequential model(torch::nn::Linear(4, 4), torch::nn::ReLU());
  s.fill(model.ptr());
  auto f = s.compile([&model](const Tensor& x) { return model->forward(x); });
  const Tensor x = s.randn({2, 4});
  for (int call = 0; call < 4; ++call) f(x);
  torch::nn::Sequential other(torch::nn::Linear(4, 4), torch::nn::Tanh());
  s.fill(other.ptr());
  model = other;
  for (int call = 0; call < 9; ++call) f(x);
}

void a_frozen_weight_that_is_unfrozen(Session& s) {
  Tensor weight = s.randn({4});
  auto f = s.compile([&weight](const Tensor& x) { return x * weight; });
  const at::AutoGradMode grad(true);
  const Tensor x = s.randn({4});
  for (int call = 0; call < 4; ++call) f(x);
  weight.requires_grad_();
  for (int call = 0; call < 3; ++call) f(x);
  weight.requires_grad_(false);
  for (int call = 0; call < 4; ++call) f(x);
}

void parameters_that_share_memory(Session& s) {
  Tensor flat = s.randn({8});
  Tensor left = flat.slice(0, 0, 4);
  const Tensor right = flat.slice(0, 4, 8);
  s.watch("flat", &flat);
  auto f = s.compile([=](const Tensor& x) { return x * left + right; });
  for (int call = 0; call < 9; ++call) {
    f(s.randn({4}));
    flat.add_(0.5);
  }
}

const Program programs[] = {
    {"a_weight_updated_in_place", a_weight_updated_in_place},
    {"a_weight_written_through_data", a_weight_written_through_data},
    {"an_optimizer_step_between_calls", an_optimizer_step_between_calls},
    {"a_weight_replaced_by_assignment", a_weight_replaced_by_assignment},
    {"a_weight_whose_data_is_replaced", a_weight_whose_data_is_replaced},
    {"two_weights_swapped", two_weights_swapped},
    {"a_closed_over_tensor_replaced_on_every_call", a_closed_over_tensor_replaced_on_every_call},
    {"a_bias_that_comes_and_goes", a_bias_that_comes_and_goes},
    {"a_module_moved_to_another_dtype", a_module_moved_to_another_dtype},
    {"a_module_moved_to_another_device", a_module_moved_to_another_device},
    {"a_submodule_switched_to_eval", a_submodule_switched_to_eval},
    {"a_submodule_replaced", a_submodule_replaced},
    {"a_frozen_weight_that_is_unfrozen", a_frozen_weight_that_is_unfrozen},
    {"parameters_that_share_memory", parameters_that_share_memory},
};

}  // namespace

std::span<const Program> state_programs() { return programs; }

}  // namespace sinter::test::hostile
