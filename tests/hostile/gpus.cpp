#include <c10/core/DeviceGuard.h>

#include "groups.h"
#include "programs.h"
#include "threads.h"

/// Several GPUs: programs that move between them, use more than one, or are called while another is current. Run with
/// the session on GPU 0.
namespace sinter::test::hostile {
namespace {

using at::Tensor;

const at::Device kFirst(at::kCUDA, 0);
const at::Device kSecond(at::kCUDA, 1);

void one_function_on_two_gpus(Session& s) {
  auto f = s.compile([](const Tensor& x) { return at::gelu(x * 2) + x.sum(); });
  for (int call = 0; call < 6; ++call) {
    f(s.randn({64}));
    f(s.randn({64}).to(kSecond));
  }
}

void a_module_moved_to_another_gpu(Session& s) {
  auto layer = s.adopt(torch::nn::Linear(8, 4));
  auto f = s.compile(layer);
  for (int call = 0; call < 4; ++call) f(s.randn({2, 8}));
  layer->to(kSecond);
  for (int call = 0; call < 4; ++call) f(s.randn({2, 8}).to(kSecond));
  layer->to(kFirst);
  for (int call = 0; call < 4; ++call) f(s.randn({2, 8}));
}

/// What LibTorch makes on "cuda" lies on the current GPU.
void another_gpu_is_current(Session& s) {
  auto f = s.compile([](const Tensor& x) { return at::arange(x.size(0), x.options().device(at::kCUDA)) * 2 + 1; });
  for (int call = 0; call < 8; ++call) {
    const c10::DeviceGuard guard(call % 2 == 0 ? kFirst : kSecond);
    f(s.randn({8}));
  }
}

void a_gpu_that_is_not_current(Session& s) {
  auto layer = torch::nn::Linear(8, 8);
  s.fill(layer.ptr());
  layer->to(kSecond);
  auto f = s.compile([&](const Tensor& x) { return at::softmax(layer->forward(x).relu(), -1); });
  for (int call = 0; call < 6; ++call) f(s.randn({4, 8}).to(kSecond));
}

void a_guard_inside_the_callable(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const c10::DeviceGuard guard(x.device());
    return x * at::ones({8}, x.options().device(at::kCUDA)) + at::full({}, 3.0, x.options().device(at::kCUDA));
  });
  for (int call = 0; call < 6; ++call) f(s.randn({8}).to(call % 2 == 0 ? kFirst : kSecond));
}

void layers_on_two_gpus(Session& s) {
  auto first = s.adopt(torch::nn::Linear(8, 8));
  auto second = s.adopt(torch::nn::Linear(8, 4));
  second->to(kSecond);
  auto f = s.compile([&](const Tensor& x) {
    const Tensor hidden = at::gelu(first->forward(x)) * 2;
    return at::tanh(second->forward(hidden.to(kSecond)) + 1);
  });
  for (int call = 0; call < 6; ++call) f(s.randn({4, 8}));
}

void there_and_back(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor there = (x * 3 - 1).to(kSecond);
    const Tensor back = at::sigmoid(there).matmul(there.t()).to(kFirst);
    return back + x.sum();
  });
  for (int call = 0; call < 6; ++call) f(s.randn({256, 256}));
}

void arguments_on_two_gpus(Session& s) {
  auto f =
      s.compile([](const Tensor& a, const Tensor& b) { return std::vector<Tensor>{a * 2 + b.to(a.device()), b - 1}; });
  for (int call = 0; call < 4; ++call) f(s.randn({32}), s.randn({32}).to(kSecond));
  for (int call = 0; call < 4; ++call) f(s.randn({32}).to(kSecond), s.randn({32}));
}

void dropout_on_another_gpu(Session& s) {
  auto f = s.compile([](const Tensor& x) { return at::dropout(x, 0.5, true) + at::rand_like(x); });
  for (int call = 0; call < 6; ++call) {
    if (call == 4) at::manual_seed(3);
    f(s.randn({64}).to(kSecond));
  }
}

void writes_on_another_gpu(Session& s) {
  Tensor cache = at::zeros({8, 4}, s.options().device(kSecond));
  Tensor mirror = at::zeros({4}, s.options());
  s.watch("cache", &cache);
  s.watch("mirror", &mirror);
  auto f = s.compile([&](const Tensor& x, const Tensor& at) {
    cache.index_copy_(0, at, x * 2);
    mirror.copy_(cache.sum(0));
    return cache * 1;
  });
  for (int64_t call = 0; call < 6; ++call) {
    f(s.randn({1, 4}).to(kSecond), at::full({1}, call, s.options(at::kLong).device(kSecond)));
  }
}

void a_branch_on_another_gpu(Session& s) {
  auto f = s.compile([](const Tensor& x) { return (x.sum() > 0).item<bool>() ? x * 2 : x - 1; });
  for (int call = 0; call < 10; ++call) f((s.randn({16}).abs() * (call % 2 == 0 ? 1 : -1)).to(kSecond));
}

void a_copy_to_the_host(Session& s) {
  auto f = s.compile([](const Tensor& x) { return std::vector<Tensor>{(x * 2).cpu(), x.to(kFirst) + 1}; });
  for (int call = 0; call < 6; ++call) f(s.randn({64}).to(kSecond));
}

void two_threads_on_two_gpus(Session& s) {
  auto f = s.compile([](const Tensor& x) { return at::relu(x * 3) - x.mean(); });
  const Tensor inputs[] = {s.randn({512}), s.randn({512}).to(kSecond)};
  f(inputs[0]);
  f(inputs[1]);
  call_from_threads(s, f, inputs);
  f(inputs[0]);
}

/// A step whose parameters lie on two GPUs, the loss on the second.
void a_training_step_over_two_gpus(Session& s) {
  const at::AutoGradMode grad(true);
  auto first = s.adopt(torch::nn::Linear(8, 8));
  auto second = s.adopt(torch::nn::Linear(8, 1));
  second->to(kSecond);
  std::vector<Tensor> parameters = first->parameters();
  for (const Tensor& parameter : second->parameters()) parameters.push_back(parameter);
  torch::optim::SGD optimizer(parameters, torch::optim::SGDOptions(0.05));
  auto f = s.compile([&](const Tensor& x, const Tensor& target) {
    optimizer.zero_grad();
    const Tensor loss = at::mse_loss(second->forward(at::tanh(first->forward(x)).to(kSecond)), target);
    loss.backward();
    optimizer.step();
    return loss.detach();
  });
  for (int call = 0; call < 8; ++call) f(s.randn({16, 8}), s.randn({16, 1}).to(kSecond));
}

void a_training_step_on_another_gpu(Session& s) {
  const at::AutoGradMode grad(true);
  torch::nn::Sequential model(torch::nn::Linear(4, 8), torch::nn::Dropout(0.2), torch::nn::Linear(8, 1));
  s.adopt(model);
  model->to(kSecond);
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(0.01));
  auto f = s.compile([&](const Tensor& x, const Tensor& target) {
    optimizer.zero_grad();
    const Tensor loss = at::mse_loss(model->forward(x), target);
    loss.backward();
    torch::nn::utils::clip_grad_norm_(model->parameters(), 0.5);
    optimizer.step();
    return loss.detach();
  });
  for (int call = 0; call < 8; ++call) f(s.randn({8, 4}).to(kSecond), s.randn({8, 1}).to(kSecond));
}

void a_current_gpu_left_changed_by_the_callable(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const c10::impl::VirtualGuardImpl impl(at::kCUDA);
    impl.setDevice(kSecond);
    return x * 2;
  });
  for (int call = 0; call < 6; ++call) {
    const c10::DeviceGuard guard(kFirst);
    f(s.randn({8}));
    s.show("current", c10::impl::VirtualGuardImpl(at::kCUDA).getDevice().str());
  }
}

const Program programs[] = {
    {"one_function_on_two_gpus", one_function_on_two_gpus},
    {"a_module_moved_to_another_gpu", a_module_moved_to_another_gpu},
    {"another_gpu_is_current", another_gpu_is_current},
    {"a_gpu_that_is_not_current", a_gpu_that_is_not_current},
    {"a_guard_inside_the_callable", a_guard_inside_the_callable},
    {"layers_on_two_gpus", layers_on_two_gpus},
    {"there_and_back", there_and_back},
    {"arguments_on_two_gpus", arguments_on_two_gpus},
    {"dropout_on_another_gpu", dropout_on_another_gpu},
    {"writes_on_another_gpu", writes_on_another_gpu},
    {"a_branch_on_another_gpu", a_branch_on_another_gpu},
    {"a_copy_to_the_host", a_copy_to_the_host},
    {"two_threads_on_two_gpus", two_threads_on_two_gpus},
    {"a_training_step_over_two_gpus", a_training_step_over_two_gpus},
    {"a_training_step_on_another_gpu", a_training_step_on_another_gpu},
    {"a_current_gpu_left_changed_by_the_callable", a_current_gpu_left_changed_by_the_callable},
};

}  // namespace

std::span<const Program> gpus_programs() { return programs; }

}  // namespace sinter::test::hostile
