#include <ATen/Parallel.h>

#include "groups.h"
#include "programs.h"

/// Modules that change between calls while everything they held before lives on, and modules that the callable itself
/// changes.
namespace sinter::test::hostile {
namespace {

using at::Tensor;
namespace nn = torch::nn;

void parameters_swapped_before_late_calls(Session& s) {
  auto first = s.adopt(nn::Linear(4, 4));
  auto second = s.adopt(nn::Linear(4, 4));
  auto f = s.compile([&](const Tensor& x) { return second->forward(at::relu(first->forward(x))); });
  for (int call = 0; call < 20; ++call) {
    if (call % 3 == 1) std::swap(first->weight, second->weight);
    f(s.randn({2, 4}));
  }
}

void a_parameter_replaced_while_the_old_one_is_kept(Session& s) {
  auto layer = s.adopt(nn::Linear(4, 3));
  std::vector<Tensor> kept;
  auto f = s.compile(layer);
  for (int call = 0; call < 20; ++call) {
    if (call % 5 == 4) {
      kept.push_back(layer->weight);
      layer->weight = s.randn({3, 4});
    }
    f(s.randn({2, 4}));
  }
}

void a_running_mean_replaced_while_the_old_one_is_kept(Session& s) {
  auto norm = s.adopt(nn::BatchNorm1d(4));
  std::vector<Tensor> kept;
  auto f = s.compile(norm);
  for (int call = 0; call < 16; ++call) {
    if (call % 4 == 3) {
      kept.push_back(norm->running_mean);
      norm->running_mean = s.randn({4});
    }
    f(s.randn({3, 4}));
    s.show("running mean", norm->running_mean);
  }
  for (const Tensor& mean : kept) s.show("kept", mean);
}

void layers_pushed_back_between_calls(Session& s) {
  nn::Sequential model(nn::Linear(4, 4));
  s.adopt(model);
  auto f = s.compile([&model](const Tensor& x) { return model->forward(x); });
  for (int call = 0; call < 16; ++call) {
    if (call % 4 == 3) {
      nn::Linear layer(4, 4);
      s.fill(layer.ptr());
      model->push_back(layer);
    }
    f(s.randn({2, 4}));
  }
}

/// Runs the layers that are registered with it.
struct Registered : nn::Module {
  Tensor forward(Tensor x) {
    for (const auto& child : children()) x = at::tanh(child->as<nn::Linear>()->forward(x));
    return x;
  }
};

nn::Linear filled_layer(Session& s) {
  nn::Linear layer(4, 4);
  s.fill(layer.ptr());
  return layer;
}

void modules_registered_between_calls(Session& s) {
  const auto model = std::make_shared<Registered>();
  s.watch(model);
  auto f = s.compile(model);
  for (int call = 0; call < 16; ++call) {
    if (call % 4 == 3) model->register_module("layer" + std::to_string(call), filled_layer(s));
    f(s.randn({2, 4}));
  }
}

void a_module_replaced_under_its_name(Session& s) {
  const auto model = std::make_shared<Registered>();
  model->register_module("layer", filled_layer(s));
  s.watch(model);
  std::vector<std::shared_ptr<nn::Module>> kept;
  auto f = s.compile(model);
  for (int call = 0; call < 16; ++call) {
    if (call % 4 == 3) {
      kept.push_back(model->children().front());
      model->replace_module("layer", filled_layer(s));
    }
    f(s.randn({2, 4}));
  }
}

void modules_inserted_into_a_list(Session& s) {
  nn::ModuleList layers(filled_layer(s));
  s.watch(layers.ptr());
  auto f = s.compile(
      [&layers](Tensor x) {
        for (const auto& layer : *layers) x = at::tanh(layer->as<nn::Linear>()->forward(x));
        return x;
      },
      {.modules = {{"layers", layers.ptr()}}});
  for (int call = 0; call < 16; ++call) {
    if (call % 4 == 3) layers->insert(0, filled_layer(s));
    f(s.randn({2, 4}));
  }
}

/// Beside the callable, its caller runs the same module in the mode that the last call left.
void a_network_switched_to_eval_inside(Session& s) {
  nn::Sequential model(nn::Linear(4, 4), nn::Dropout(0.5), nn::BatchNorm1d(4));
  s.adopt(model);
  auto f = s.compile([&model](const Tensor& x, bool evaluates) {
    if (evaluates) {
      model->eval();
    } else {
      model->train();
    }
    return model->forward(x);
  });
  for (int call = 0; call < 16; ++call) {
    f(s.randn({6, 4}), call % 3 == 0);
    s.show("later", model->forward(s.randn({6, 4})));
    model->train(call % 2 == 0);
  }
}

/// What the last call froze is frozen for its caller too.
void a_layer_frozen_inside(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(nn::Linear(4, 3));
  auto f = s.compile([&layer](const Tensor& x, bool freezes) {
    layer->weight.set_requires_grad(!freezes);
    return layer->forward(x).detach();
  });
  for (int call = 0; call < 12; ++call) {
    f(s.randn({2, 4}), call % 3 == 0);
    layer->zero_grad();
    layer->forward(s.randn({2, 4})).sum().backward();
    s.show("frozen", layer->weight.grad().defined() ? "no" : "yes");
    layer->weight.set_requires_grad(call % 2 == 0);
  }
}

void a_number_of_threads_set_inside(Session& s) {
  const int before = at::get_num_threads();
  auto f = s.compile([](const Tensor& x) {
    at::set_num_threads(2);
    return x.sum(0) * 2;
  });
  for (int call = 0; call < 8; ++call) {
    at::set_num_threads(1);
    f(s.randn({8, 4}));
    s.show("threads", std::to_string(at::get_num_threads()));
  }
  at::set_num_threads(before);
}

const Program programs[] = {
    {"parameters_swapped_before_late_calls", parameters_swapped_before_late_calls},
    {"a_parameter_replaced_while_the_old_one_is_kept", a_parameter_replaced_while_the_old_one_is_kept},
    {"a_running_mean_replaced_while_the_old_one_is_kept", a_running_mean_replaced_while_the_old_one_is_kept},
    {"layers_pushed_back_between_calls", layers_pushed_back_between_calls},
    {"modules_registered_between_calls", modules_registered_between_calls},
    {"a_module_replaced_under_its_name", a_module_replaced_under_its_name},
    {"modules_inserted_into_a_list", modules_inserted_into_a_list},
    {"a_network_switched_to_eval_inside", a_network_switched_to_eval_inside},
    {"a_layer_frozen_inside", a_layer_frozen_inside},
    {"a_number_of_threads_set_inside", a_number_of_threads_set_inside},
};

}  // namespace

std::span<const Program> live_module_programs() { return programs; }

}  // namespace sinter::test::hostile
