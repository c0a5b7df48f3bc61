#include <ATen/autocast_mode.h>

#include "groups.h"
#include "programs.h"

/// LibTorch's global modes, changed between the calls and inside them.
namespace sinter::test::hostile {
namespace {

using at::Tensor;

/// Autocast on one device, for the length of a scope.
class Autocast {
 public:
  Autocast(at::DeviceType device, at::ScalarType dtype)
      : device_(device),
        was_(at::autocast::is_autocast_enabled(device)),
        dtype_(at::autocast::get_autocast_dtype(device)) {
    at::autocast::set_autocast_enabled(device, true);
    at::autocast::set_autocast_dtype(device, dtype);
  }
  ~Autocast() {
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, was_);
    at::autocast::set_autocast_dtype(device_, dtype_);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool was_;
  at::ScalarType dtype_;
};

void autocast_switched_on_and_off(Session& s) {
  auto layer = s.adopt(torch::nn::Linear(4, 3));
  auto f = s.compile(layer);
  const Tensor x = s.randn({2, 4});
  for (int call = 0; call < 4; ++call) f(x);
  for (int call = 0; call < 4; ++call) {
    const Autocast autocast(s.device().type(), at::kBFloat16);
    f(x);
  }
  for (int call = 0; call < 4; ++call) f(x);
}

void autocast_inside_the_callable(Session& s) {
  auto layer = s.adopt(torch::nn::Linear(4, 3));
  auto f = s.compile([&layer](const Tensor& x) {
    const Autocast autocast(x.device().type(), at::kBFloat16);
    return at::relu(layer->forward(x));
  });
  for (int call = 0; call < 5; ++call) f(s.randn({2, 4}));
}

/// On a GPU autocast packs the weights of recurrent layers itself, through pointers.
void a_training_step_of_an_lstm_under_autocast(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(torch::nn::LSTM(torch::nn::LSTMOptions(3, 4).num_layers(2).batch_first(true)));
  torch::optim::SGD optimizer(layer->parameters(), 0.1);
  const auto step = [&](const Tensor& x) {
    optimizer.zero_grad(false);
    Tensor loss;
    {
      const Autocast autocast(x.device().type(), at::kBFloat16);
      loss = std::get<0>(layer(at::relu(x))).square().mean();
    }
    loss.backward();
    optimizer.step();
    return loss.detach();
  };
  auto f = s.compile(step, {.numerics = Numerics::eager});
  for (int call = 0; call < 8; ++call) f(s.randn({2, 5, 3}));
}

void a_weight_changed_under_autocasts_cache(Session& s) {
  auto layer = s.adopt(torch::nn::Linear(4, 3));
  auto f = s.compile(layer);
  const Autocast autocast(s.device().type(), at::kBFloat16);
  const Tensor x = s.randn({2, 4});
  for (int call = 0; call < 5; ++call) {
    layer->weight.mul_(1.5);
    f(x);
  }
}

void another_default_dtype(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x + at::ones({3}, at::TensorOptions(x.device())) / 3; });
  const Tensor x = s.integers(9, {3});
  for (int call = 0; call < 4; ++call) f(x);
  c10::set_default_dtype(caffe2::TypeMeta::Make<double>());
  for (int call = 0; call < 4; ++call) f(x);
  c10::set_default_dtype(caffe2::TypeMeta::Make<float>());
  for (int call = 0; call < 4; ++call) f(x);
}

void inference_mode_and_out_of_it(Session& s) {
  auto f = s.compile([](const Tensor& x) { return std::vector<Tensor>{x * 2, x.view({-1})}; });
  const Tensor x = s.randn({2, 2});
  for (int call = 0; call < 4; ++call) f(x);
  for (int call = 0; call < 4; ++call) {
    const c10::InferenceMode inference;
    f(x);
  }
  for (int call = 0; call < 4; ++call) f(x);
}

void an_inference_tensor_outside_inference_mode(Session& s) {
  auto f = s.compile([](const Tensor& x) { return at::relu(x) * 2; });
  Tensor x;
  {
    const c10::InferenceMode inference;
    x = s.randn({4});
  }
  for (int call = 0; call < 4; ++call) f(x);
  for (int call = 0; call < 4; ++call) f(s.randn({4}));
}

void grad_mode_switched_on_and_off(Session& s) {
  auto f = s.compile([](const Tensor& x) { return at::sigmoid(x) * x; });
  const Tensor x = s.randn({4}).requires_grad_();
  for (int call = 0; call < 4; ++call) f(x);
  for (int call = 0; call < 4; ++call) {
    const at::AutoGradMode grad(true);
    f(x);
  }
  for (int call = 0; call < 4; ++call) f(x);
}

void grad_mode_with_nothing_that_requires_it(Session& s) {
  const at::AutoGradMode grad(true);
  auto f = s.compile([](const Tensor& x) { return std::vector<Tensor>{at::sigmoid(x) * x, x.t(), x}; });
  for (int call = 0; call < 5; ++call) f(s.randn({4, 2}));
}

void no_grad_inside_the_callable(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(torch::nn::Linear(4, 3));
  auto f = s.compile([&layer](const Tensor& x) {
    const c10::NoGradGuard no_grad;
    return layer->forward(x) * 2;
  });
  for (int call = 0; call < 5; ++call) f(s.randn({2, 4}));
}

void a_result_made_to_require_gradients(Session& s) {
  const at::AutoGradMode grad(true);
  auto f = s.compile([](const Tensor& x) { return (x * 2).requires_grad_(); });
  for (int call = 0; call < 5; ++call) f(s.randn({4}));
}

void a_detached_input(Session& s) {
  const at::AutoGradMode grad(true);
  auto f = s.compile([](const Tensor& x) { return std::vector<Tensor>{x.detach() * 2, x.detach()}; });
  const Tensor x = s.randn({4}).requires_grad_();
  for (int call = 0; call < 4; ++call) f(x);
}

void grad_mode_left_changed_by_the_callable(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    at::GradMode::set_enabled(!at::GradMode::is_enabled());
    return x * 2;
  });
  const Tensor x = s.randn({4});
  for (int call = 0; call < 8; ++call) {
    f(x);
    s.show("grad mode", at::GradMode::is_enabled() ? "on" : "off");
  }
  at::GradMode::set_enabled(false);
}

void deterministic_algorithms(Session& s) {
  auto f = s.compile(
      [](const Tensor& x, const Tensor& index) { return at::zeros({4}, x.options()).index_add(0, index, x); });
  const Tensor index = s.integers(4, {6});
  for (int call = 0; call < 4; ++call) f(s.randn({6}), index);
  at::globalContext().setDeterministicAlgorithms(true, false);
  for (int call = 0; call < 4; ++call) f(s.randn({6}), index);
  at::globalContext().setDeterministicAlgorithms(false, false);
}

const Program programs[] = {
    {"autocast_switched_on_and_off", autocast_switched_on_and_off},
    {"autocast_inside_the_callable", autocast_inside_the_callable},
    {"a_training_step_of_an_lstm_under_autocast", a_training_step_of_an_lstm_under_autocast},
    {"a_weight_changed_under_autocasts_cache", a_weight_changed_under_autocasts_cache},
    {"another_default_dtype", another_default_dtype},
    {"inference_mode_and_out_of_it", inference_mode_and_out_of_it},
    {"an_inference_tensor_outside_inference_mode", an_inference_tensor_outside_inference_mode},
    {"grad_mode_switched_on_and_off", grad_mode_switched_on_and_off},
    {"grad_mode_with_nothing_that_requires_it", grad_mode_with_nothing_that_requires_it},
    {"no_grad_inside_the_callable", no_grad_inside_the_callable},
    {"a_result_made_to_require_gradients", a_result_made_to_require_gradients},
    {"a_detached_input", a_detached_input},
    {"grad_mode_left_changed_by_the_callable", grad_mode_left_changed_by_the_callable},
    {"deterministic_algorithms", deterministic_algorithms},
};

}  // namespace

std::span<const Program> mode_programs() { return programs; }

}  // namespace sinter::test::hostile
