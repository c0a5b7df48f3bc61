#include "groups.h"
#include "programs.h"

/// Callables that write to tensors which outlive the call without being arguments, and to temporaries of their own.
namespace sinter::test::hostile {
namespace {

using at::Tensor;

void a_counter_on_the_device(Session& s) {
  Tensor steps = at::zeros({}, s.options(at::kLong));
  s.watch("steps", &steps);
  auto f = s.compile([steps](const Tensor& x) {
    steps.add_(1);
    return x * steps;
  });
  for (int call = 0; call < 6; ++call) f(s.randn({3}));
}

void batch_norm_in_training(Session& s) {
  auto layer = s.adopt(torch::nn::BatchNorm1d(3));
  auto f = s.compile(layer);
  for (int call = 0; call < 6; ++call) f(s.randn({5, 3}));
  layer->eval();
  for (int call = 0; call < 4; ++call) f(s.randn({5, 3}));
}

void a_moving_average_in_a_view_of_state(Session& s) {
  Tensor averages = at::zeros({2, 4}, s.options());
  s.watch("averages", &averages);
  auto f = s.compile([&averages](const Tensor& x) {
    averages[1].mul_(0.9).add_(x, 0.1);
    return x - averages[1];
  });
  for (int call = 0; call < 6; ++call) f(s.randn({4}));
}

void a_key_value_cache(Session& s) {
  Tensor keys = at::zeros({6, 4}, s.options());
  s.watch("keys", &keys);
  auto f = s.compile([&keys](const Tensor& row, const Tensor& at) {
    keys.index_put_({at}, row);
    return at::matmul(keys, row.t());
  });
  for (int64_t call = 0; call < 6; ++call) f(s.randn({1, 4}), at::full({1}, call, s.options(at::kLong)));
}

void state_returned_after_a_write(Session& s) {
  Tensor total = at::zeros({3}, s.options());
  s.watch("total", &total);
  auto f = s.compile([&total](const Tensor& x) { return total.add_(x); });
  for (int call = 0; call < 5; ++call) f(s.randn({3}));
}

void a_captured_tensor_replaced_inside(Session& s) {
  Tensor hidden = at::zeros({3}, s.options());
  s.watch("hidden", &hidden);
  auto f = s.compile([&hidden](const Tensor& x) {
    hidden = at::tanh(hidden + x);
    return hidden * 2;
  });
  for (int call = 0; call < 6; ++call) f(s.randn({3}));
}

void a_captured_vector_that_grows(Session& s) {
  std::vector<Tensor> history;
  auto f = s.compile([&history](const Tensor& x) {
    history.push_back(x * 2);
    return at::stack(history).sum(0);
  });
  for (int call = 0; call < 5; ++call) f(s.randn({3}));
  for (const Tensor& tensor : history) s.show("kept", tensor);
}

void the_last_input_left_in_a_captured_variable(Session& s) {
  Tensor last;
  s.watch("last", &last);
  auto f = s.compile([&last](const Tensor& x) {
    last = x;
    return x + 1;
  });
  const Tensor first = s.randn({3});
  for (int call = 0; call < 3; ++call) f(first);
  for (int call = 0; call < 4; ++call) f(s.randn({3}));
}

void a_row_of_an_input_left_in_a_captured_variable(Session& s) {
  Tensor row;
  s.watch("row", &row);
  auto f = s.compile([&row](const Tensor& x) {
    row = x[0];
    return x.t();
  });
  for (int call = 0; call < 6; ++call) f(s.randn({3, 2}));
}

void a_result_left_in_a_captured_variable(Session& s) {
  Tensor seen;
  s.watch("seen", &seen);
  auto f = s.compile([&seen](const Tensor& x) {
    seen = x * 3;
    return x + 1;
  });
  for (int call = 0; call < 6; ++call) f(s.randn({3}));
}

void a_write_through_data(Session& s) {
  Tensor weight = s.randn({3});
  s.watch("weight", &weight);
  auto f = s.compile([&weight](const Tensor& x) {
    weight.data().mul_(0.5);
    return x * weight;
  });
  for (int call = 0; call < 5; ++call) f(s.randn({3}));
}

void a_write_to_a_named_parameter(Session& s) {
  auto layer = s.adopt(torch::nn::Linear(3, 2));
  auto f = s.compile(
      [&layer](const Tensor& x) {
        layer->bias.fill_(0.25);
        return layer->forward(x);
      },
      {.modules = {{"layer", layer.ptr()}}});
  for (int call = 0; call < 5; ++call) f(s.randn({2, 3}));
}

void writes_to_temporaries(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    Tensor y = at::empty_like(x);
    at::mul_out(y, x, x);
    Tensor z = y.clone();
    z.t().slice(0, 0, 1).fill_(2);
    z.diagonal().add_(1);
    y.masked_fill_(z > 1, 0);
    return std::vector<Tensor>{y, z};
  });
  for (int call = 0; call < 5; ++call) f(s.randn({3, 3}));
}

void a_temporary_that_is_resized(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    Tensor y = x * 2;
    y.resize_({2});
    return y + 1;
  });
  for (int call = 0; call < 4; ++call) f(s.randn({6}));
}

void a_temporary_that_is_set(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    Tensor y = at::empty({0}, x.options());
    y.set_(x * 2);
    return y + 1;
  });
  for (int call = 0; call < 4; ++call) f(s.randn({6}));
}

void a_temporary_reshaped_in_place(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    Tensor y = x * 2;
    y.unsqueeze_(0);
    y.transpose_(0, 1);
    y.add_(1);
    return y;
  });
  for (int call = 0; call < 5; ++call) f(s.randn({6}));
}

void a_cache_that_grows_up_to_a_cap(Session& s) {
  Tensor cache = at::zeros({0, 4}, s.options());
  auto f = s.compile([&cache](const Tensor& row) {
    cache = at::cat({cache, row});
    if (cache.size(0) > 6) cache = cache.slice(0, cache.size(0) - 6);
    return cache.sum(0) * 2;
  });
  for (int call = 0; call < 24; ++call) f(s.randn({1, 4}));
  s.show("cache", cache);
}

const Program programs[] = {
    {"a_counter_on_the_device", a_counter_on_the_device},
    {"batch_norm_in_training", batch_norm_in_training},
    {"a_moving_average_in_a_view_of_state", a_moving_average_in_a_view_of_state},
    {"a_key_value_cache", a_key_value_cache},
    {"state_returned_after_a_write", state_returned_after_a_write},
    {"a_captured_tensor_replaced_inside", a_captured_tensor_replaced_inside},
    {"a_captured_vector_that_grows", a_captured_vector_that_grows},
    {"the_last_input_left_in_a_captured_variable", the_last_input_left_in_a_captured_variable},
    {"a_row_of_an_input_left_in_a_captured_variable", a_row_of_an_input_left_in_a_captured_variable},
    {"a_result_left_in_a_captured_variable", a_result_left_in_a_captured_variable},
    {"a_write_through_data", a_write_through_data},
    {"a_write_to_a_named_parameter", a_write_to_a_named_parameter},
    {"writes_to_temporaries", writes_to_temporaries},
    {"a_temporary_that_is_resized", a_temporary_that_is_resized},
    {"a_temporary_that_is_set", a_temporary_that_is_set},
    {"a_temporary_reshaped_in_place", a_temporary_reshaped_in_place},
    {"a_cache_that_grows_up_to_a_cap", a_cache_that_grows_up_to_a_cap},
};

}  // namespace

std::span<const Program> state_write_programs() { return programs; }

}  // namespace sinter::test::hostile
