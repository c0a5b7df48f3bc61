#include <ATen/CPUGeneratorImpl.h>

#include "groups.h"
#include "programs.h"

/// Operators that draw from LibTorch's generators: the same stream, and the generator left where eager leaves it.
namespace sinter::test::hostile {
namespace {

using at::Tensor;

void dropout_in_training(Session& s) {
  torch::nn::Dropout layer(0.5);
  auto f = s.compile(layer);
  for (int call = 0; call < 6; ++call) f(s.randn({32}));
  layer->eval();
  for (int call = 0; call < 4; ++call) f(s.randn({32}));
}

void noise_of_every_kind(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    return std::vector<Tensor>{at::rand_like(x),
                               at::randn({5}, x.options()) + x.sum(),
                               at::bernoulli(at::sigmoid(x)),
                               at::randint(0, 100, {4}, x.options()),
                               at::randperm(6, x.options().dtype(at::kLong)),
                               at::multinomial(at::softmax(x, 0), 2),
                               at::normal(x, at::full_like(x, 0.5))};
  });
  for (int call = 0; call < 6; ++call) f(s.randn({8}));
}

void in_place_noise_on_a_temporary(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor noise = at::empty_like(x).uniform_(-1, 1);
    return x + noise + at::empty_like(x).normal_() + at::zeros_like(x).bernoulli_(0.25);
  });
  for (int call = 0; call < 6; ++call) f(s.randn({8}));
}

void the_seed_set_between_calls(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x * at::rand_like(x); });
  const Tensor x = s.randn({8});
  for (int call = 0; call < 8; ++call) {
    if (call % 2 == 0) at::manual_seed(7);
    f(x);
  }
}

void the_seed_set_inside(Session& s) {
  auto all = s.compile([](const Tensor& x) {
    at::manual_seed(11);
    return x * at::rand_like(x);
  });
  at::Generator generator = at::globalContext().defaultGenerator(s.device());
  auto one = s.compile([&generator](const Tensor& x) {
    generator.set_current_seed(11);
    return x * at::rand_like(x);
  });
  const Tensor x = s.randn({8});
  for (int call = 0; call < 6; ++call) all(x);
  for (int call = 0; call < 6; ++call) one(x);
}

void a_generator_of_its_own(Session& s) {
  auto generator =
      s.on_cuda() ? at::globalContext().defaultGenerator(s.device()).clone() : at::detail::createCPUGenerator(5);
  auto f = s.compile([&generator](const Tensor& x) { return x + at::randn({4}, generator, x.options()); });
  for (int call = 0; call < 6; ++call) f(s.randn({4}));
  s.show("generator", generator.get_state());
}

void a_generator_of_its_own_seeded_inside(Session& s) {
  auto generator = at::globalContext().defaultGenerator(s.device()).clone();
  auto f = s.compile([&generator](const Tensor& x) {
    generator.set_current_seed(3);
    return x + at::randn({4}, generator, x.options());
  });
  for (int call = 0; call < 6; ++call) f(s.randn({4}));
}

void a_generator_replaced(Session& s) {
  auto first = at::detail::createCPUGenerator(5);
  auto second = at::detail::createCPUGenerator(6);
  auto* generator = &first;
  auto f = s.compile([&generator](const Tensor& x) { return x + at::randn({4}, *generator).to(x.device()); });
  for (int call = 0; call < 3; ++call) f(s.randn({4}));
  generator = &second;
  for (int call = 3; call < 8; ++call) f(s.randn({4}));
  s.show("first generator", first.get_state());
  s.show("second generator", second.get_state());
}

void noise_whose_result_nobody_uses(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor unused = at::randn_like(x);
    return x * 2 + at::rand_like(x);
  });
  for (int call = 0; call < 6; ++call) f(s.randn({4}));
}

void two_draws_that_look_alike(Session& s) {
  auto f = s.compile([](const Tensor& x) { return std::make_pair(at::rand_like(x), at::rand_like(x)); });
  for (int call = 0; call < 6; ++call) f(s.randn({4}));
}

void a_random_branch_on_the_device(Session& s) {
  auto f = s.compile([](const Tensor& x) { return at::where(at::rand_like(x) > 0.5, x, -x).sum(); });
  for (int call = 0; call < 6; ++call) f(s.randn({16}));
}

/// What LibTorch draws on a GPU for each element depends on whether the tensor begins at a multiple of 16 bytes.
void dropout_of_inputs_that_begin_anywhere(Session& s) {
  auto f = s.compile([](const Tensor& x) { return at::dropout(x, 0.5, true); });
  for (int call = 0; call < 9; ++call) f(s.randn({67}).narrow(0, call % 3 == 2 ? 0 : 3, 64));
}

/// The same where the memory itself begins there, as another library may lend it: aligned in the first calls, then not.
void dropout_of_memory_that_begins_anywhere(Session& s) {
  auto f = s.compile([](const Tensor& x) { return at::dropout(x, 0.5, true) * 2 + 1; });
  const Tensor held = s.randn({67});
  for (int call = 0; call < 12; ++call) {
    const int64_t first = call < 4 || call % 3 == 2 ? 0 : 3;
    f(at::from_blob(held.data_ptr<float>() + first, {64}, held.options()));
  }
}

/// 0 everywhere where both draw the same.
void two_dropouts_of_one_value(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor y = x * 3 + 1;
    return std::make_pair(at::dropout(y, 0.5, true) - at::dropout(y, 0.5, true), at::rand_like(y) - at::rand_like(y));
  });
  for (int call = 0; call < 6; ++call) f(s.randn({64}));
}

/// What a replay has drawn until it comes to a branch that it does not know is drawn again by the call that goes on.
void a_draw_before_a_branch_that_is_new(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor y = x + at::rand_like(x);
    return x.sum().item<double>() > 100 ? y * 2 + at::rand_like(x) : y - at::rand_like(x);
  });
  for (int call = 0; call < 24; ++call) f(s.counting({8}) + (call % 5 == 4 ? 200 : 1));
}

void slopes_drawn_in_training(Session& s) {
  torch::nn::RReLU layer;
  auto f = s.compile(layer);
  for (int call = 0; call < 6; ++call) f(s.randn({32}));
  layer->eval();
  for (int call = 0; call < 4; ++call) f(s.randn({32}));
}

void the_generator_touched_between_two_draws(Session& s) {
  int64_t calls = 0;
  auto f = s.compile([&](const Tensor& x) {
    const int64_t turn = ++calls % 4;
    const Tensor first = at::dropout(x, 0.5, true) + at::rand_like(x);
    at::Generator generator = at::globalContext().defaultGenerator(s.device());
    const Tensor state = generator.get_state();
    if (turn == 1) generator.set_current_seed(static_cast<uint64_t>(calls));
    const Tensor second = at::dropout(first * 2, 0.25, true);
    if (turn == 2) generator.set_state(state);  // what follows draws the same again
    return std::vector<Tensor>{first, second, at::randn_like(x) + second};
  });
  for (int call = 0; call < 16; ++call) f(s.randn({64}));
}

/// What is drawn on the CPU is drawn at once: after the steps that still have to read what was there.
void noise_drawn_anew_after_it_was_used(Session& s) {
  Tensor noise = s.randn({64});
  s.watch("noise", &noise);
  auto f = s.compile([&noise](const Tensor& x) {
    const Tensor before = x + noise;
    noise.normal_();
    return before * noise;
  });
  for (int call = 0; call < 6; ++call) f(s.randn({64}));
}

const Program programs[] = {
    {"noise_drawn_anew_after_it_was_used", noise_drawn_anew_after_it_was_used},
    {"the_generator_touched_between_two_draws", the_generator_touched_between_two_draws},
    {"a_draw_before_a_branch_that_is_new", a_draw_before_a_branch_that_is_new},
    {"dropout_in_training", dropout_in_training},
    {"noise_of_every_kind", noise_of_every_kind},
    {"in_place_noise_on_a_temporary", in_place_noise_on_a_temporary},
    {"the_seed_set_between_calls", the_seed_set_between_calls},
    {"the_seed_set_inside", the_seed_set_inside},
    {"a_generator_of_its_own", a_generator_of_its_own},
    {"a_generator_of_its_own_seeded_inside", a_generator_of_its_own_seeded_inside},
    {"a_generator_replaced", a_generator_replaced},
    {"noise_whose_result_nobody_uses", noise_whose_result_nobody_uses},
    {"two_draws_that_look_alike", two_draws_that_look_alike},
    {"a_random_branch_on_the_device", a_random_branch_on_the_device},
    {"dropout_of_inputs_that_begin_anywhere", dropout_of_inputs_that_begin_anywhere},
    {"dropout_of_memory_that_begins_anywhere", dropout_of_memory_that_begins_anywhere},
    {"two_dropouts_of_one_value", two_dropouts_of_one_value},
    {"slopes_drawn_in_training", slopes_drawn_in_training},
};

}  // namespace

std::span<const Program> random_programs() { return programs; }

}  // namespace sinter::test::hostile
