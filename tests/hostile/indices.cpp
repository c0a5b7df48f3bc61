#include "groups.h"
#include "programs.h"

/// Operators that refuse indices out of range, or 0 to divide by: on the CPU they throw where they stand, and
/// everything before them is done. A GPU would end the process, so indices stay in range there.
namespace sinter::test::hostile {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
namespace nn = torch::nn;

/// Indices below `count`, in some calls on the CPU with one that is not.
Tensor indices_for(Session& s, int call, int64_t count, c10::IntArrayRef sizes) {
  Tensor indices = s.integers(count, sizes);
  if (!s.on_cuda() && call % 5 == 4) indices.view({-1})[1].fill_(count);
  return indices;
}

void rows_selected_between_other_work(Session& s) {
  Tensor before = at::zeros({3}, s.options());
  Tensor behind = at::zeros({3}, s.options());
  s.watch("before", &before);
  s.watch("behind", &behind);
  auto f = s.compile([&](const Tensor& x, const Tensor& index) {
    before.add_(1);
    const Tensor rows = (x * 2 + before).index_select(0, index);
    behind.add_(1);
    return rows.relu() + behind;
  });
  for (int call = 0; call < 12; ++call) f(s.randn({4, 3}), indices_for(s, call, 4, {5}));
}

void an_index_out_of_range_behind_a_write_to_an_input(Session& s) {
  auto f = s.compile([](const Tensor& x, const Tensor& index) {
    x.mul_(0.5);
    const Tensor picked = at::gather(x, 1, index);
    x.add_(1);
    return picked * x.sum();
  });
  for (int call = 0; call < 12; ++call) f(s.randn({2, 4}), indices_for(s, call, 4, {2, 3}));
}

void indices_that_count_from_the_end(Session& s) {
  auto f = s.compile([](const Tensor& x, const Tensor& rows, const Tensor& columns) {
    return at::tanh(x).index({rows, columns}) * 3;
  });
  for (int call = 0; call < 12; ++call) {
    const Tensor columns = indices_for(s, call, 3, {4}) - 3;
    f(s.randn({5, 3}), s.integers(5, {4}) - (call % 2), columns - (!s.on_cuda() && call % 5 == 3 ? 1 : 0));
  }
}

/// The segment computes them, so nobody can look at them before it runs.
void indices_that_are_computed(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor order = at::argsort(x * 2, int64_t{0});
    return at::gather(x + 1, 0, order) - at::gather(x, 0, order.flip(0));
  });
  for (int call = 0; call < 5; ++call) f(s.randn({100}));
}

void indices_written_between_two_readers(Session& s) {
  Tensor index = s.integers(4, {100});
  s.watch("index", &index);
  auto f = s.compile([&index](const Tensor& x) {
    const Tensor first = (x * 2).index_select(0, index);
    index.copy_(index.flip(0));
    const Tensor second = (x * 2).index_select(0, index);
    index.zero_();
    return Tensors{first, second};
  });
  for (int call = 0; call < 6; ++call) {
    index.copy_(s.integers(4, {100}));
    f(s.randn({4}));
  }
}

void indices_in_every_second_place(Session& s) {
  auto f = s.compile(
      [](const Tensor& x, const Tensor& index) { return x.scatter_add(0, index, at::ones({3, 2}, x.options())) * 2; });
  for (int call = 0; call < 12; ++call) {
    const Tensor wide = at::stack({indices_for(s, call, 4, {2, 3}), s.integers(9, {2, 3}) + 100}, 2);
    f(s.randn({4, 2}), wide.select(2, 0).t());
  }
}

/// How many rows there are changes, and with it what is in range.
void a_table_that_is_replaced_by_a_shorter_one(Session& s) {
  Tensor table = s.randn({6, 3});
  auto f = s.compile([&table](const Tensor& x, const Tensor& index) {
    return at::embedding(table, index) * x + at::embedding(table * 2, index);
  });
  for (int call = 0; call < 12; ++call) {
    table = s.randn({call % 6 == 5 ? 4 : 6, 3});
    const int64_t count = s.on_cuda() && call % 6 == 5 ? 4 : 6;
    f(s.randn({3}), at::full({2}, count - 1, s.options(at::kLong)));
  }
}

void short_integers_and_no_indices(Session& s) {
  auto f = s.compile([](const Tensor& x, const Tensor& index) {
    return at::embedding(x.exp(), index).sum(-1) + at::ones({}, x.options());
  });
  for (int call = 0; call < 6; ++call) f(s.randn({4, 3}), s.integers(4, {2, 3}, at::kInt));
  for (int call = 0; call < 4; ++call) f(s.randn({4, 3}), at::empty({0}, s.options(at::kInt)));
}

void classes_that_do_not_count(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(nn::Linear(4, 3));
  const auto options = nn::functional::CrossEntropyFuncOptions().ignore_index(-7);
  auto f = s.compile([&](const Tensor& x, const Tensor& classes) {
    layer->zero_grad();
    const Tensor loss = nn::functional::cross_entropy(layer->forward(at::tanh(x)), classes, options);
    loss.backward();
    return loss.detach();
  });
  for (int call = 0; call < 12; ++call) {
    Tensor classes = indices_for(s, call, 3, {5});
    classes[3].fill_(-7);
    f(s.randn({5, 4}), classes);
  }
}

void an_embedding_that_is_trained(Session& s) {
  const at::AutoGradMode grad(true);
  auto words = s.adopt(nn::Embedding(7, 4));
  auto layer = s.adopt(nn::Linear(4, 2));
  torch::optim::SGD optimizer({words->weight, layer->weight, layer->bias}, 0.1);
  auto f = s.compile([&](const Tensor& index) {
    optimizer.zero_grad();
    const Tensor loss = layer->forward(at::tanh(words->forward(index))).pow(2).mean();
    loss.backward();
    optimizer.step();
    return loss.detach();
  });
  for (int call = 0; call < 12; ++call) f(indices_for(s, call, 7, {3, 2}));
}

void values_put_at_indices_twice(Session& s) {
  Tensor counts = at::zeros({4}, s.options());
  s.watch("counts", &counts);
  auto f = s.compile([&counts](const Tensor& x, const Tensor& index) {
    counts.index_put_({index}, x * 2, /*accumulate=*/true);
    return counts.index_fill(0, index, 5) + counts.index_add(0, index, x);
  });
  for (int call = 0; call < 12; ++call) f(s.counting({6}), indices_for(s, call, 4, {6}));
}

void bags_that_do_not_begin_at_the_beginning(Session& s) {
  auto layer = s.adopt(nn::EmbeddingBag(nn::EmbeddingBagOptions(10, 4).mode(torch::kMean)));
  auto f = s.compile(
      [&layer](const Tensor& index, const Tensor& offsets) { return layer->forward(index, offsets) * 2 + 1; });
  for (int call = 0; call < 10; ++call) {
    const int64_t first = !s.on_cuda() && call == 6 ? 1 : 0;
    const int64_t last = !s.on_cuda() && call == 8 ? 9 : 4;
    f(s.integers(10, {6}), at::tensor({first, int64_t{2}, last}, at::kLong).to(s.device()));
  }
}

void integers_divided_by_numbers(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor places = (x * 10).to(at::kLong);
    return Tensors{at::floor_divide(places, 3),
                   at::remainder(places, 7),
                   at::fmod(places, -4),
                   at::div(places, 5, "trunc"),
                   places / 2,
                   places * 2 / places.size(0)};
  });
  for (int call = 0; call < 5; ++call) f(s.randn({100}));
}

/// A GPU gives some number where the divisor is 0.
void divisors_that_are_zero_in_some_calls(Session& s) {
  Tensor before = at::zeros({1}, s.options());
  s.watch("before", &before);
  auto f = s.compile([&before](const Tensor& x, const Tensor& divisor) {
    before.add_(1);
    const Tensor places = (x * 10).to(at::kLong);
    const Tensor quotient = at::floor_divide(places, divisor);
    before.mul_(2);
    return quotient + at::remainder(places, divisor) + before;
  });
  for (int call = 0; call < 12; ++call) {
    Tensor divisor = s.integers(5, {100}) + 1;
    if (!s.on_cuda() && call % 5 == 4) divisor[70].zero_();
    f(s.randn({100}), divisor);
  }
}

void a_number_that_becomes_zero_and_divides(Session& s) {
  int64_t divisor = 3;
  auto f = s.compile([&divisor](const Tensor& x) { return at::remainder((x * 10).to(at::kInt), divisor) * 2; });
  for (int call = 0; call < 12; ++call) {
    divisor = !s.on_cuda() && call % 6 == 5 ? 0 : 3;
    f(s.randn({100}));
  }
}

/// 256 is 0 there.
void bytes_divided_by_a_large_number(Session& s) {
  int64_t divisor = 255;
  auto f = s.compile([&divisor](const Tensor& x) {
    const Tensor places = (x * 10).to(at::kByte);
    return at::remainder(places * 2, divisor) + 1;
  });
  for (int call = 0; call < 9; ++call) {
    divisor = !s.on_cuda() && call % 3 == 2 ? 256 : 255;
    f(s.randn({100}).abs());
  }
}

const Program programs[] = {
    {"bytes_divided_by_a_large_number", bytes_divided_by_a_large_number},
    {"integers_divided_by_numbers", integers_divided_by_numbers},
    {"divisors_that_are_zero_in_some_calls", divisors_that_are_zero_in_some_calls},
    {"a_number_that_becomes_zero_and_divides", a_number_that_becomes_zero_and_divides},
    {"rows_selected_between_other_work", rows_selected_between_other_work},
    {"an_index_out_of_range_behind_a_write_to_an_input", an_index_out_of_range_behind_a_write_to_an_input},
    {"indices_that_count_from_the_end", indices_that_count_from_the_end},
    {"indices_that_are_computed", indices_that_are_computed},
    {"indices_written_between_two_readers", indices_written_between_two_readers},
    {"indices_in_every_second_place", indices_in_every_second_place},
    {"a_table_that_is_replaced_by_a_shorter_one", a_table_that_is_replaced_by_a_shorter_one},
    {"short_integers_and_no_indices", short_integers_and_no_indices},
    {"classes_that_do_not_count", classes_that_do_not_count},
    {"an_embedding_that_is_trained", an_embedding_that_is_trained},
    {"values_put_at_indices_twice", values_put_at_indices_twice},
    {"bags_that_do_not_begin_at_the_beginning", bags_that_do_not_begin_at_the_beginning},
};

}  // namespace

std::span<const Program> index_programs() { return programs; }

}  // namespace sinter::test::hostile
