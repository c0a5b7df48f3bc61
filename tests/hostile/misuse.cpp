#include <optional>
#include <random>
#include <stdexcept>
#include <thread>

#include "groups.h"
#include "programs.h"

/// Callables that no compiler can do much for: they must stay right, and the process must live.
namespace sinter::test::hostile {
namespace {

using at::Tensor;

Tensor sum_in_another_thread(const Tensor& x) {
  Tensor sum;
  std::thread([&] {
    const c10::NoGradGuard no_grad;
    sum = x.sum();
  }).join();
  return sum;
}

std::vector<Tensor>& left_behind() {
  static std::vector<Tensor> tensors;
  return tensors;
}

void results_left_for_another_thread(Session& s) {
  left_behind().clear();
  auto f = s.compile([](const Tensor& x) {
    left_behind().push_back(at::tanh(x) * 2);
    left_behind().push_back(left_behind().back() + x);
    return left_behind().back() - 1;
  });
  for (int call = 0; call < 6; ++call) f(s.randn({5}));
  for (const Tensor& tensor : left_behind()) s.show("sum", sum_in_another_thread(tensor));
  left_behind().clear();
}

void results_read_by_another_thread_during_the_next_call(Session& s) {
  left_behind().clear();
  auto f = s.compile([](const Tensor& x) {
    left_behind().push_back(at::tanh(x) * 2);
    return left_behind().back() - 1;
  });
  f(s.randn({5}));
  for (int call = 0; call < 8; ++call) {
    const Tensor last = left_behind().back();
    Tensor sum;
    std::thread reader([&] {
      const c10::NoGradGuard no_grad;
      for (int round = 0; round < 20; ++round) sum = last.sum() + round;
    });
    f(s.randn({5}));
    reader.join();
    s.show("sum", sum);
  }
  left_behind().clear();
}

void an_exception_half_way_on_every_second_call(Session& s) {
  Tensor total = at::zeros({3}, s.options());
  s.watch("total", &total);
  int steps = 0;
  auto f = s.compile([&](const Tensor& x) {
    total.add_(x);
    const Tensor y = at::tanh(total) * 2;
    if (++steps % 2 == 0) throw std::runtime_error("half way");
    total.mul_(0.5);
    return y;
  });
  for (int call = 0; call < 16; ++call) f(s.randn({3}));
}

Tensor one_of_many(unsigned choice, const Tensor& x) {
  switch (choice % 6) {
    case 0:
      return x + 1;
    case 1:
      return x * 0.5;
    case 2:
      return at::tanh(x);
    case 3:
      return at::relu(x) - x;
    case 4:
      return x.flip(0);
    default:
      return x.cumsum(0);
  }
}

void operators_chosen_at_random(Session& s) {
  std::mt19937 random(11);
  auto f = s.compile([&random](Tensor x) {
    for (int step = 0; step < 4; ++step) x = one_of_many(random(), x);
    return x;
  });
  for (int call = 0; call < 40; ++call) f(s.randn({5}));
}

void a_branch_on_each_bit_of_a_counter(Session& s) {
  unsigned calls = 0;
  auto f = s.compile([&calls](const Tensor& x) {
    Tensor y = x;
    for (unsigned bit = 0; bit < 6; ++bit) y = (calls >> bit & 1U) != 0 ? at::tanh(y) : y * 0.5;
    ++calls;
    return y;
  });
  for (int call = 0; call < 80; ++call) f(s.randn({3}));
}

void a_branch_on_each_of_six_numbers(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    Tensor y = x;
    for (int64_t i = 0; i < 6; ++i) y = x[i].item<float>() > 0 ? at::tanh(y) : y * 0.5;
    return y;
  });
  for (int call = 0; call < 80; ++call) f(s.randn({6}));
}

void an_argument_let_go_inside(Session& s) {
  auto f = s.compile([](Tensor& x) {
    const Tensor y = at::tanh(x);
    x.reset();
    return y * 2;
  });
  for (int call = 0; call < 6; ++call) {
    Tensor x = s.randn({5});
    f(x);
    s.show("argument", x.defined() ? "there" : "gone");
  }
}

void the_memory_of_an_argument_given_up_inside(Session& s) {
  auto f = s.compile([](Tensor x) {
    const Tensor y = at::tanh(x);
    x.set_data(at::empty({0}, x.options()));
    return y * 2;
  });
  for (int call = 0; call < 6; ++call) f(s.randn({5}));
}

void the_storage_of_an_argument_emptied_inside(Session& s) {
  auto f = s.compile([](Tensor x) {
    const Tensor y = at::tanh(x);
    x.resize_({0});
    x.set_(at::empty({0}, x.options()));
    return y * 2;
  });
  for (int call = 0; call < 6; ++call) f(s.randn({5}));
}

void a_layer_destroyed_inside(Session& s) {
  std::optional<torch::nn::Linear> layer;
  auto f = s.compile([&layer](const Tensor& x) {
    const Tensor y = (*layer)->forward(x);
    layer.reset();
    return at::tanh(y);
  });
  for (int call = 0; call < 8; ++call) {
    layer.emplace(4, 3);
    s.fill(layer->ptr());
    f(s.randn({2, 4}));
  }
}

const Program programs[] = {
    {"results_left_for_another_thread", results_left_for_another_thread},
    {"results_read_by_another_thread_during_the_next_call", results_read_by_another_thread_during_the_next_call},
    {"an_exception_half_way_on_every_second_call", an_exception_half_way_on_every_second_call},
    {"operators_chosen_at_random", operators_chosen_at_random},
    {"a_branch_on_each_bit_of_a_counter", a_branch_on_each_bit_of_a_counter},
    {"a_branch_on_each_of_six_numbers", a_branch_on_each_of_six_numbers},
    {"an_argument_let_go_inside", an_argument_let_go_inside},
    {"the_memory_of_an_argument_given_up_inside", the_memory_of_an_argument_given_up_inside},
    {"the_storage_of_an_argument_emptied_inside", the_storage_of_an_argument_emptied_inside},
    {"a_layer_destroyed_inside", a_layer_destroyed_inside},
};

}  // namespace

std::span<const Program> misuse_programs() { return programs; }

}  // namespace sinter::test::hostile
