#include <chrono>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>

#include "groups.h"
#include "programs.h"

/// Callables that depend on something on the host which is neither an argument nor a mode.
namespace sinter::test::hostile {
namespace {

using at::Tensor;

void a_counter_in_the_arithmetic(Session& s) {
  int steps = 0;
  auto f = s.compile([&steps](const Tensor& x) { return x * static_cast<double>(++steps); });
  for (int call = 0; call < 6; ++call) f(s.randn({3}));
}

void a_branch_on_a_counter(Session& s) {
  int steps = 0;
  auto f = s.compile([&steps](const Tensor& x) { return ++steps % 2 == 0 ? x + 1 : x - 1; });
  for (int call = 0; call < 6; ++call) f(s.randn({3}));
}

void a_counter_in_the_result(Session& s) {
  int64_t steps = 0;
  auto f = s.compile([&steps](const Tensor& x) { return std::make_pair(x + 1, ++steps); });
  for (int call = 0; call < 6; ++call) f(s.randn({3}));
}

void random_numbers_of_the_host(Session& s) {
  std::mt19937 random(3);
  auto f = s.compile([&random](const Tensor& x) { return x * (random() % 1000) / 1000; });
  for (int call = 0; call < 6; ++call) f(s.randn({3}));
}

void an_environment_variable(Session& s) {
  auto f = s.compile([](const Tensor& x) { return std::getenv("SINTER_HOSTILE_TEST") == nullptr ? x : x * 2; });
  for (int call = 0; call < 6; ++call) {
    if (call == 1) setenv("SINTER_HOSTILE_TEST", "1", 1);
    f(s.randn({3}));
  }
  unsetenv("SINTER_HOSTILE_TEST");
}

void the_time(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    return at::clamp(x, -1e300, static_cast<double>(now)) * 0 + x;  // the time changes no number
  });
  for (int call = 0; call < 5; ++call) f(s.randn({3}, at::kDouble));
}

void a_flag_flipped_between_calls(Session& s) {
  bool doubled = false;
  auto f = s.compile([&doubled](const Tensor& x) { return doubled ? x * 2 : x + 1; });
  for (int call = 1; call <= 8; ++call) {
    if (call == 4) doubled = true;
    f(s.randn({3}));
  }
}

void a_schedule_by_step_given_as_argument(Session& s) {
  auto f = s.compile([](const Tensor& x, int64_t step) { return step % 10 == 0 ? x.mean(0, true) : x * 2; });
  for (int64_t step = 0; step < 4; ++step) f(s.randn({3}), step);
  for (int call = 0; call < 5; ++call) f(s.randn({3}), int64_t{10});
}

void a_captured_vector_of_factors(Session& s) {
  std::vector<double> factors{1.5};
  auto f = s.compile([&factors](const Tensor& x) {
    Tensor y = x;
    for (const double factor : factors) y = y * factor;
    factors.push_back(0.5);
    return y;
  });
  for (int call = 0; call < 6; ++call) f(s.randn({3}));
}

void a_host_cache_filled_on_first_use(Session& s) {
  std::map<int64_t, Tensor> masks;
  auto f = s.compile([&masks](const Tensor& x) {
    const int64_t size = x.size(0);
    if (!masks.contains(size)) masks[size] = at::ones({size, size}, x.options()).tril();
    return at::matmul(masks.at(size), x);
  });
  for (int call = 0; call < 6; ++call) f(s.randn({3, 2}));
  for (int call = 0; call < 6; ++call) f(s.randn({4, 2}));
}

void a_list_of_modules_that_grows(Session& s) {
  std::vector<torch::nn::Linear> layers{s.adopt(torch::nn::Linear(3, 3))};
  auto f = s.compile([&layers](Tensor x) {
    for (auto& layer : layers) x = at::relu(layer->forward(x));
    return x;
  });
  for (int call = 0; call < 3; ++call) f(s.randn({2, 3}));
  layers.push_back(s.adopt(torch::nn::Linear(3, 3)));
  for (int call = 3; call < 8; ++call) f(s.randn({2, 3}));
}

struct RotaryImpl : torch::nn::Module {
  Tensor forward(const Tensor& x) {
    if (!table.defined() || table.size(0) < x.size(0)) {
      const Tensor places = at::arange(2 * x.size(0), x.options()).unsqueeze(1);
      table =
          register_buffer("table" + std::to_string(x.size(0)), at::cos(places * at::arange(x.size(1), x.options())));
    }
    return x * table.slice(0, 0, x.size(0));
  }
  Tensor table;
};
TORCH_MODULE(Rotary);

void a_buffer_that_grows_with_the_longest_input(Session& s) {
  Rotary rotary;
  auto f = s.compile(rotary);
  for (int call = 0; call < 5; ++call) f(s.randn({3, 4}));
  for (int call = 0; call < 5; ++call) f(s.randn({9, 4}));
  for (int call = 0; call < 3; ++call) f(s.randn({3, 4}));
}

void losses_logged(Session& s) {
  std::vector<double> losses;
  auto f = s.compile([&losses](const Tensor& x) {
    const Tensor loss = (x * x).mean();
    losses.push_back(loss.item<double>());
    return x / (loss + 1);
  });
  for (int call = 0; call < 12; ++call) {
    f(s.randn({3}));
    s.show("losses", std::to_string(losses.size()));
    s.show("loss", at::scalar_tensor(losses.back()));
  }
}

void effects_between_reads_and_writes(Session& s) {
  std::string log;
  auto f = s.compile([&log](Tensor& x) {
    x.add_(1);
    log += 'a';
    if ((x.sum() > 0).item<bool>()) {
      x.mul_(-0.5);
      log += x[0].item<float>() < 0 ? 'n' : 'p';
    }
    return x.clone();
  });
  Tensor x = s.randn({4});
  for (int call = 0; call < 24; ++call) {
    f(x);
    s.show("log", log);
  }
}

void an_exception_between_writes_in_some_calls(Session& s) {
  int steps = 0;
  auto f = s.compile([&steps](Tensor& x) {
    x.add_(1);
    if (++steps % 5 == 0) throw std::runtime_error("the fifth step");
    return x.mul_(0.5).clone();
  });
  Tensor x = s.randn({4});
  for (int call = 0; call < 16; ++call) {
    f(x);
    s.show("steps", std::to_string(steps));
  }
}

void counters_in_functions_compiled_apart(Session& s) {
  int inner_steps = 0;
  int outer_steps = 0;
  auto inner = compile([&inner_steps](const Tensor& x) { return ++inner_steps % 3 == 0 ? x + 1 : x - 1; });
  auto f = s.compile([&](const Tensor& x) {
    const bool even = ++outer_steps % 2 == 0;
    return even ? inner(x) : x * 2;
  });
  for (int call = 0; call < 30; ++call) {
    f(s.randn({3}));
    s.show("steps", std::to_string(inner_steps) + " " + std::to_string(outer_steps));
  }
}

void a_number_of_the_host_that_is_raised_to(Session& s) {
  int steps = 0;
  auto f = s.compile([&steps](const Tensor& x) { return at::pow(x, 1.0 * ++steps); });
  for (int call = 0; call < 24; ++call) {
    f(s.randn({3}).abs());
    s.show("steps", std::to_string(steps));
  }
}

const Program programs[] = {
    {"a_counter_in_the_arithmetic", a_counter_in_the_arithmetic},
    {"a_branch_on_a_counter", a_branch_on_a_counter},
    {"a_counter_in_the_result", a_counter_in_the_result},
    {"random_numbers_of_the_host", random_numbers_of_the_host},
    {"an_environment_variable", an_environment_variable},
    {"the_time", the_time},
    {"a_flag_flipped_between_calls", a_flag_flipped_between_calls},
    {"a_schedule_by_step_given_as_argument", a_schedule_by_step_given_as_argument},
    {"a_captured_vector_of_factors", a_captured_vector_of_factors},
    {"a_host_cache_filled_on_first_use", a_host_cache_filled_on_first_use},
    {"a_buffer_that_grows_with_the_longest_input", a_buffer_that_grows_with_the_longest_input},
    {"losses_logged", losses_logged},
    {"effects_between_reads_and_writes", effects_between_reads_and_writes},
    {"an_exception_between_writes_in_some_calls", an_exception_between_writes_in_some_calls},
    {"counters_in_functions_compiled_apart", counters_in_functions_compiled_apart},
    {"a_number_of_the_host_that_is_raised_to", a_number_of_the_host_that_is_raised_to},
    {"a_list_of_modules_that_grows", a_list_of_modules_that_grows},
};

}  // namespace

std::span<const Program> host_state_programs() { return programs; }

}  // namespace sinter::test::hostile
