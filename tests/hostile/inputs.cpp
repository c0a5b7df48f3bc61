#include "groups.h"
#include "programs.h"

/// What the arguments of a call may look like, and change to between calls.
namespace sinter::test::hostile {
namespace {

using at::Tensor;

Tensor gelu_of_sum(const Tensor& a, const Tensor& b) { return at::gelu(a + b) * 2; }
Tensor wave(const Tensor& x) { return at::sin(x) * 0.5 + x; }

void the_same_tensor_twice(Session& s) {
  auto f = s.compile(gelu_of_sum);
  const Tensor x = s.randn({3, 4});
  for (int call = 0; call < 4; ++call) f(x, x);
  const Tensor y = s.randn({3, 4});
  for (int call = 0; call < 4; ++call) f(x, y);
}

void inputs_that_overlap(Session& s) {
  auto f = s.compile(gelu_of_sum);
  const Tensor base = s.randn({10});
  for (int call = 0; call < 4; ++call) f(base.slice(0, 0, 8), base.slice(0, 2, 10));
  for (int call = 0; call < 4; ++call) f(base.slice(0, 2, 10), base.slice(0, 0, 8));
}

void a_misaligned_input_after_an_aligned_one(Session& s) {
  auto f = s.compile(wave);
  const Tensor base = s.randn({257});
  for (int call = 0; call < 4; ++call) f(base.slice(0, 0, 256));
  for (int call = 0; call < 4; ++call) f(base.slice(0, 1, 257));
}

void expanded_inputs_with_zero_strides(Session& s) {
  auto f = s.compile(gelu_of_sum);
  const Tensor row = s.randn({1, 5});
  const Tensor column = s.randn({6, 1});
  for (int call = 0; call < 4; ++call) f(row.expand({6, 5}), column.expand({6, 5}));
}

void zero_dim_inputs(Session& s) {
  auto f =
      s.compile([](const Tensor& a, const Tensor& b) { return std::vector<Tensor>{a * b, a.sum(), a + 1, b.exp()}; });
  for (int call = 0; call < 4; ++call) f(s.randn({}), s.randn({3}));
  for (int call = 0; call < 4; ++call) f(s.randn({}), s.randn({}));
}

void empty_inputs(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    return std::vector<Tensor>{x * 2 + 1, x.sum(), x.sum(0), at::cat({x, x}), x.t().contiguous()};
  });
  for (int call = 0; call < 4; ++call) f(at::empty({0, 3}, s.options()));
  for (int call = 0; call < 4; ++call) f(at::empty({3, 0}, s.options()));
}

void a_mean_of_nothing(Session& s) {
  auto f = s.compile(
      [](const Tensor& x) { return std::vector<Tensor>{x.mean(), x.mean(1), x.prod(), at::logsumexp(x, 1)}; });
  for (int call = 0; call < 4; ++call) f(at::empty({2, 0}, s.options()));
}

void non_contiguous_inputs(Session& s) {
  auto f = s.compile(wave);
  const Tensor x = s.randn({6, 8});
  for (int call = 0; call < 4; ++call) f(x.t());
  for (int call = 0; call < 4; ++call) f(x.slice(1, 0, 8, 2));
}

void channels_last_inputs(Session& s) {
  auto f = s.compile([](const Tensor& x) { return at::max_pool2d(at::relu(x) + 1, 2); });
  const Tensor x = s.randn({2, 4, 6, 6});
  for (int call = 0; call < 4; ++call) f(x);
  for (int call = 0; call < 4; ++call) f(x.contiguous(at::MemoryFormat::ChannelsLast));
}

void a_view_of_a_negative_or_conjugate(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x * 2; });
  const Tensor z = at::complex(s.randn({4}), s.randn({4}));
  for (int call = 0; call < 3; ++call) f(at::imag(z.conj()));
  for (int call = 0; call < 3; ++call) f(z.conj());
  for (int call = 0; call < 4; ++call) f(at::imag(z));
}

void other_sizes_dtypes_and_ranks(Session& s) {
  auto f = s.compile(wave);
  for (int call = 0; call < 3; ++call) f(s.randn({4}));
  for (int call = 0; call < 3; ++call) f(s.randn({5}));
  for (int call = 0; call < 3; ++call) f(s.randn({5}, at::kDouble));
  for (int call = 0; call < 3; ++call) f(s.integers(9, {5}));
  for (int call = 0; call < 3; ++call) f(s.randn({5, 1}));
  for (int call = 0; call < 4; ++call) f(s.randn({4}));
}

void another_device_and_back(Session& s) {
  auto f = s.compile(wave);
  const Tensor x = s.randn({4});
  for (int call = 0; call < 3; ++call) f(x.cpu());
  for (int call = 0; call < 3; ++call) f(x);
  for (int call = 0; call < 4; ++call) f(x.cpu());
}

void an_input_that_is_also_closed_over(Session& s) {
  const Tensor weight = s.randn({4});
  const Tensor other = s.randn({4});
  auto f = s.compile([weight](const Tensor& x) { return x * weight; });
  for (int call = 0; call < 4; ++call) f(weight);
  for (int call = 0; call < 6; ++call) f(other);
  for (int call = 0; call < 3; ++call) f(weight);
}

void an_input_that_is_a_view_of_state(Session& s) {
  Tensor table = s.randn({4, 3});
  s.watch("table", &table);
  auto f = s.compile([&table](const Tensor& row) { return table.sum(0) + row; });
  for (int call = 0; call < 4; ++call) f(table[1]);
  for (int call = 0; call < 4; ++call) f(table[2]);
  for (int call = 0; call < 5; ++call) f(s.randn({3}));
}

void a_fresh_input_where_the_last_one_died(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x.flip(0) - x; });
  for (int call = 0; call < 9; ++call) f(s.randn({64}));
}

void an_argument_that_comes_to_require_gradients(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const at::NoGradGuard no_grad;
    return x.requires_grad() ? x * 2 : x + 2;
  });
  const Tensor x = s.randn({5});
  for (int call = 0; call < 4; ++call) f(x);
  x.requires_grad_();
  for (int call = 0; call < 4; ++call) f(x);
}

void sizes_that_grow_by_one_up_to_a_cap(Session& s) {
  auto f = s.compile([](const Tensor& x) { return at::softmax(wave(x), 0).sum(0); });
  for (int64_t rows = 1; rows <= 12; ++rows) f(s.randn({std::min<int64_t>(rows, 9), 3}));
  for (int call = 0; call < 3; ++call) f(s.randn({9, 3}));
}

const Program programs[] = {
    {"an_argument_that_comes_to_require_gradients", an_argument_that_comes_to_require_gradients},
    {"the_same_tensor_twice", the_same_tensor_twice},
    {"inputs_that_overlap", inputs_that_overlap},
    {"a_misaligned_input_after_an_aligned_one", a_misaligned_input_after_an_aligned_one},
    {"expanded_inputs_with_zero_strides", expanded_inputs_with_zero_strides},
    {"zero_dim_inputs", zero_dim_inputs},
    {"empty_inputs", empty_inputs},
    {"a_mean_of_nothing", a_mean_of_nothing},
    {"non_contiguous_inputs", non_contiguous_inputs},
    {"channels_last_inputs", channels_last_inputs},
    {"a_view_of_a_negative_or_conjugate", a_view_of_a_negative_or_conjugate},
    {"other_sizes_dtypes_and_ranks", other_sizes_dtypes_and_ranks},
    {"another_device_and_back", another_device_and_back},
    {"an_input_that_is_also_closed_over", an_input_that_is_also_closed_over},
    {"an_input_that_is_a_view_of_state", an_input_that_is_a_view_of_state},
    {"a_fresh_input_where_the_last_one_died", a_fresh_input_where_the_last_one_died},
    {"sizes_that_grow_by_one_up_to_a_cap", sizes_that_grow_by_one_up_to_a_cap},
};

}  // namespace

std::span<const Program> input_programs() { return programs; }

}  // namespace sinter::test::hostile
