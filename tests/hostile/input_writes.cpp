#include "groups.h"
#include "programs.h"

/// Callables that write to their arguments.
namespace sinter::test::hostile {
namespace {

using at::Tensor;

void add_to_an_input(Session& s) {
  auto f = s.compile([](Tensor x) { return x.add_(1) * 2; });
  const Tensor x = s.randn({4});
  for (int call = 0; call < 6; ++call) f(x);
}

void write_to_a_row_of_an_input(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    x[0].zero_();
    x.t().slice(0, 1, 2).mul_(3);
    return x.sum(1);
  });
  for (int call = 0; call < 6; ++call) f(s.randn({3, 4}));
}

void write_to_an_input_that_is_a_view(Session& s) {
  auto f = s.compile([](const Tensor& row) {
    row.mul_(2);
    return row + 1;
  });
  Tensor table = s.randn({4, 5});
  s.watch("table", &table);
  for (int call = 0; call < 6; ++call) f(table.t()[call % 3]);
}

void write_to_one_of_two_inputs_that_overlap(Session& s) {
  auto f = s.compile([](const Tensor& a, const Tensor& b) {
    a.add_(1);
    return a * b;
  });
  Tensor base = s.randn({8});
  s.watch("base", &base);
  for (int call = 0; call < 5; ++call) f(base.slice(0, 0, 6), base.slice(0, 2, 8));
  for (int call = 0; call < 5; ++call) f(s.randn({6}), s.randn({6}));
}

void write_to_the_same_tensor_given_twice(Session& s) {
  auto f = s.compile([](const Tensor& a, const Tensor& b) {
    a.mul_(2);
    b.add_(1);
    return a - b;
  });
  const Tensor x = s.randn({4});
  for (int call = 0; call < 5; ++call) f(x, x);
  for (int call = 0; call < 5; ++call) f(x, s.randn({4}));
}

void read_before_and_after_a_write(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor before = x * 1;
    x.copy_(x.flip(0));
    return std::vector<Tensor>{before, x * 1, x};
  });
  const Tensor x = s.randn({5});
  for (int call = 0; call < 6; ++call) f(x);
}

void an_output_argument(Session& s) {
  auto f = s.compile([](const Tensor& x, Tensor out) { return at::add_out(out, x, x); });
  Tensor out = at::zeros({4}, s.options());
  for (int call = 0; call < 6; ++call) f(s.randn({4}), out);
}

void an_output_argument_that_is_resized(Session& s) {
  auto f = s.compile([](const Tensor& x, Tensor out) { return at::mul_out(out, x, x); });
  for (int call = 0; call < 4; ++call) f(s.randn({4}), at::empty({0}, s.options()));
}

void swap_two_inputs(Session& s) {
  auto f = s.compile([](const Tensor& a, const Tensor& b) {
    const Tensor kept = a.clone();
    a.copy_(b);
    b.copy_(kept);
    return a - b;
  });
  const Tensor a = s.randn({4});
  const Tensor b = s.randn({4});
  for (int call = 0; call < 5; ++call) f(a, b);
}

void an_input_transposed_in_place(Session& s) {
  auto f = s.compile([](Tensor x) { return x.t_() + 1; });
  Tensor x = s.randn({3, 4});
  for (int call = 0; call < 4; ++call) f(x);
}

void masked_and_indexed_writes(Session& s) {
  auto f = s.compile([](const Tensor& x, const Tensor& where) {
    x.masked_fill_(x > 0.5, -1);
    x.index_put_({where}, at::full({}, 9.0, x.options()));
    x.index_add_(0, where, at::ones({2, 3}, x.options()));
    x.scatter_(1, where.view({1, 2}), 4.0);
    return x.sum(0);
  });
  for (int call = 0; call < 6; ++call) f(s.randn({4, 3}), s.integers(3, {2}));
}

void a_write_that_casts(Session& s) {
  auto f = s.compile([](const Tensor& x, const Tensor& y) {
    x.copy_(y * 1.7);
    x.add_(y.to(at::kInt));
    return x + y;
  });
  for (int call = 0; call < 6; ++call) f(s.integers(9, {4}, at::kInt), s.randn({4}));
}

void a_key_value_cache_given_as_input(Session& s) {
  auto f = s.compile([](const Tensor& cache, const Tensor& row, int64_t at) {
    cache.narrow(0, at, 1).copy_(row);
    return at::softmax(at::matmul(cache.narrow(0, 0, at + 1), row.t()), 0);
  });
  const Tensor cache = at::zeros({8, 4}, s.options());
  for (int64_t at = 0; at < 4; ++at) f(cache, s.randn({1, 4}), at);
  for (int call = 0; call < 4; ++call) f(cache, s.randn({1, 4}), 2);
}

void foreach_writes(Session& s) {
  auto f = s.compile([](std::vector<Tensor> tensors) {
    at::_foreach_mul_(tensors, 0.5);
    at::_foreach_add_(tensors, 1);
    return tensors[0] + tensors[1];
  });
  for (int call = 0; call < 5; ++call) f(std::vector<Tensor>{s.randn({4}), s.randn({4})});
}

void another_tensor_put_in_a_reference_argument(Session& s) {
  auto f = s.compile([](Tensor& x) {
    x = x * 2;
    return x + 1;
  });
  Tensor x = s.randn({4});
  s.watch("x", &x);
  for (int call = 0; call < 5; ++call) f(x);
}

void the_version_of_a_written_input(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x.mul_(2) + 1; });
  const Tensor x = s.randn({4});
  for (int call = 0; call < 5; ++call) {
    const int64_t before = x._version();
    f(x);
    s.show("version", x._version() > before ? "raised" : "as it was");
  }
}

const Program programs[] = {
    {"the_version_of_a_written_input", the_version_of_a_written_input},
    {"add_to_an_input", add_to_an_input},
    {"write_to_a_row_of_an_input", write_to_a_row_of_an_input},
    {"write_to_an_input_that_is_a_view", write_to_an_input_that_is_a_view},
    {"write_to_one_of_two_inputs_that_overlap", write_to_one_of_two_inputs_that_overlap},
    {"write_to_the_same_tensor_given_twice", write_to_the_same_tensor_given_twice},
    {"read_before_and_after_a_write", read_before_and_after_a_write},
    {"an_output_argument", an_output_argument},
    {"an_output_argument_that_is_resized", an_output_argument_that_is_resized},
    {"swap_two_inputs", swap_two_inputs},
    {"an_input_transposed_in_place", an_input_transposed_in_place},
    {"masked_and_indexed_writes", masked_and_indexed_writes},
    {"a_write_that_casts", a_write_that_casts},
    {"a_key_value_cache_given_as_input", a_key_value_cache_given_as_input},
    {"another_tensor_put_in_a_reference_argument", another_tensor_put_in_a_reference_argument},
    {"foreach_writes", foreach_writes},
};

}  // namespace

std::span<const Program> input_write_programs() { return programs; }

}  // namespace sinter::test::hostile
