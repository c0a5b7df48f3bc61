#include <sstream>

#include "groups.h"
#include "programs.h"

/// Callables that bring data of tensors to the host, or fill tensors there.
namespace sinter::test::hostile {
namespace {

using at::Tensor;

void a_branch_on_item(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x.sum().item<float>() > 0 ? x + 1 : x - 1; });
  for (int call = 0; call < 8; ++call) f(at::full({4}, call % 3 == 0 ? -1.0 : 2.0, s.options()));
}

void a_number_read_and_used(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x / x.max().item<double>(); });
  for (const double number : {1.0, 2.0, 1.5, 3.0, 1.75, 1.25}) f(at::full({4}, number, s.options()));
}

void a_number_that_is_used_and_decides(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const auto number = x.max().item<double>();
    return number > 3 && number < 4 ? x * number + 100 : x * number;
  });
  for (const double number : {1.0, 2.0, 1.5, 9.0, 9.5, 3.5, 3.75, -1.0, 3.6, 1.75})
    f(at::full({4}, number, s.options()));
}

void a_number_read_and_returned(Session& s) {
  auto f = s.compile([](const Tensor& x) { return std::make_pair(x * 2, x.sum().item<double>()); });
  for (const double number : {1.0, 2.0, 1.5, 3.0, 1.75, 1.25}) f(at::full({4}, number, s.options()));
}

void a_loop_until_small(Session& s) {
  auto f = s.compile([](Tensor x) {
    while (x.abs().max().item<float>() > 0.1F) x = x * 0.5;
    return x;
  });
  for (int call = 0; call < 6; ++call) f(s.randn({4}) * (call + 1));
}

void a_loop_until_small_on_the_device(Session& s) {
  auto f = s.compile([](Tensor x) {
    while ((x.abs().max() > 0.1).item<bool>()) x = x * 0.5;
    return x;
  });
  for (int call = 0; call < 9; ++call) f(at::full({4}, static_cast<double>(1 << (call % 3)), s.options()));
}

void a_bool_of_a_comparison(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    return at::equal(x, x.flip(0)) ? x : at::allclose(x, x + 1) ? x * 2 : x * 3;
  });
  for (int call = 0; call < 3; ++call) f(s.randn({4}));
  for (int call = 0; call < 3; ++call) f(at::ones({4}, s.options()));
}

void sizes_from_data(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const auto unique = std::get<0>(at::_unique(x, true));
    return std::vector<Tensor>{x.nonzero(), x.masked_select(x > 1), x.index({x > 2}), unique};
  });
  for (int call = 0; call < 9; ++call) f(s.counting({6}, at::kLong) - call % 3);
}

void a_round_trip_to_the_host(Session& s) {
  auto f = s.compile([](const Tensor& x) { return (x * 2).cpu().add(1).to(x.device()) * 3; });
  for (int call = 0; call < 4; ++call) f(s.randn({4}));
}

void an_accessor_that_reads_an_input(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor host = x.cpu();
    return x * static_cast<double>(host.accessor<float, 1>()[0]);
  });
  for (int call = 0; call < 6; ++call) f(s.randn({4}));
}

void an_accessor_that_fills_a_temporary(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    Tensor table = at::empty({4});
    auto rows = table.accessor<float, 1>();
    for (int64_t i = 0; i < 4; ++i) rows[i] = static_cast<float>(i * i);
    return x + table.to(x.device());
  });
  for (int call = 0; call < 5; ++call) f(s.randn({4}));
}

void a_table_from_a_vector(Session& s) {
  std::vector<double> table{1, 2, 3};
  auto f = s.compile([&table](const Tensor& x) { return x * at::tensor(table, x.options()); });
  for (int call = 0; call < 5; ++call) f(s.randn({3}));
}

void a_blob_that_changes(Session& s) {
  std::vector<float> buffer{1, 2, 3};
  auto f =
      s.compile([&buffer](const Tensor& x) { return x * at::from_blob(buffer.data(), {3}).clone().to(x.device()); });
  for (int call = 0; call < 8; ++call) {
    f(s.randn({3}));
    buffer[1] += 1;
  }
}

void an_input_over_memory_of_the_caller(Session& s) {
  std::vector<float> buffer{1, 2, 3, 4};
  auto f = s.compile([](const Tensor& x) { return x.cumsum(0) * 2; });
  for (int call = 0; call < 5; ++call) {
    f(at::from_blob(buffer.data(), {4}));
    buffer[0] += 1;
  }
}

void a_tensor_printed(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    std::ostringstream text;
    text << (x * 2);
    return text.str().empty() ? x : x + 1;
  });
  for (int call = 0; call < 4; ++call) f(s.randn({2}));
}

void a_size_that_follows_the_input(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    Tensor y = x;
    for (int64_t i = 0; i < x.size(0); ++i) y = y + i;
    return y.view({-1, x.size(0)}).sum(0) / x.numel();
  });
  for (int64_t size = 2; size < 5; ++size) {
    for (int call = 0; call < 4; ++call) f(s.randn({size, 3}));
  }
}

void packed_sequences_of_other_lengths(Session& s) {
  namespace rnn = torch::nn::utils::rnn;
  auto layer = s.adopt(torch::nn::LSTM(torch::nn::LSTMOptions(3, 4).bidirectional(true)));
  layer->flatten_parameters();
  auto f = s.compile([&layer](const Tensor& x, const Tensor& lengths) {
    const auto [y, state] = layer->forward_with_packed_input(rnn::pack_padded_sequence(x, lengths));
    return std::vector<Tensor>{std::get<0>(rnn::pad_packed_sequence(y)), std::get<0>(state)};
  });
  const Tensor lengths = at::tensor({3, 3, 1, 1, 3, 2, 2, 1, 3, 2, 1, 1}, at::kLong).view({3, 4});
  for (int call = 0; call < 18; ++call) f(s.randn({3, 4, 3}), lengths[call % 3].clone());
}

void a_split_at_indices_of_a_tensor(Session& s) {
  auto f = s.compile([](const Tensor& x, const Tensor& indices) {
    Tensor sum = at::zeros({}, x.options());
    for (const Tensor& part : at::tensor_split(x, indices, 0)) sum = part.sum() - sum;
    return sum;
  });
  const Tensor indices = at::tensor({2, 5, 3, 6, 1, 4}, at::kLong).view({3, 2});
  for (int call = 0; call < 12; ++call) f(s.randn({8}), indices[call % 3].clone());
}

void a_loss_by_lengths_in_tensors(Session& s) {
  auto f = s.compile([](const Tensor& x, const Tensor& inputs, const Tensor& targets) {
    const Tensor labels = at::tensor({1, 2, 3, 1}, at::kLong).view({2, 2});
    return at::ctc_loss(at::log_softmax(x, 2), labels.to(x.device()), inputs, targets, 0, at::Reduction::Sum);
  });
  const Tensor inputs = at::tensor({6, 6, 5, 6}, at::kLong).view({2, 2});
  const Tensor targets = at::tensor({2, 2, 2, 1}, at::kLong).view({2, 2});
  for (int call = 0; call < 8; ++call) f(s.randn({6, 2, 5}), inputs[call % 2].clone(), targets[call % 2].clone());
}

void a_number_rounded_on_the_host(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x / std::floor(x.max().item<double>()); });
  for (int call = 0; call < 20; ++call) f((s.randn({50}).abs() + 0.1) * (1 + call % 4));
}

void quantising_to_a_power_of_two(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const double scale = std::exp2(std::floor(std::log2(x.abs().max().item<double>())));
    return at::round(x / scale * 8) * scale / 8;
  });
  for (int call = 0; call < 20; ++call) f(s.randn({50}) * (1 + call % 4));
}

void a_tensor_made_of_numbers_of_the_host(Session& s) {
  int calls = 0;
  auto f = s.compile(
      [&calls](const Tensor& x) { return x * at::tensor({static_cast<float>(++calls), 2.0F, 3.0F}).to(x.device()); });
  for (int call = 0; call < 10; ++call) f(s.randn({2, 3}));
}

void a_table_filled_by_rows(Session& s) {
  int calls = 0;
  auto f = s.compile([&calls](const Tensor& x) {
    Tensor table = at::empty({3, 3}, x.options());
    ++calls;
    for (int64_t row = 0; row < 3; ++row) table[row] = x[row] * (row + 1) + calls;
    return table + x;
  });
  for (int call = 0; call < 10; ++call) f(s.randn({3, 3}));
}

const Program programs[] = {
    {"a_branch_on_item", a_branch_on_item},
    {"a_number_read_and_used", a_number_read_and_used},
    {"a_number_read_and_returned", a_number_read_and_returned},
    {"a_number_that_is_used_and_decides", a_number_that_is_used_and_decides},
    {"a_loop_until_small", a_loop_until_small},
    {"a_loop_until_small_on_the_device", a_loop_until_small_on_the_device},
    {"a_bool_of_a_comparison", a_bool_of_a_comparison},
    {"sizes_from_data", sizes_from_data},
    {"a_round_trip_to_the_host", a_round_trip_to_the_host},
    {"an_accessor_that_reads_an_input", an_accessor_that_reads_an_input},
    {"an_accessor_that_fills_a_temporary", an_accessor_that_fills_a_temporary},
    {"a_table_from_a_vector", a_table_from_a_vector},
    {"a_blob_that_changes", a_blob_that_changes},
    {"an_input_over_memory_of_the_caller", an_input_over_memory_of_the_caller},
    {"a_tensor_printed", a_tensor_printed},
    {"a_size_that_follows_the_input", a_size_that_follows_the_input},
    {"packed_sequences_of_other_lengths", packed_sequences_of_other_lengths},
    {"a_split_at_indices_of_a_tensor", a_split_at_indices_of_a_tensor},
    {"a_loss_by_lengths_in_tensors", a_loss_by_lengths_in_tensors},
    {"a_number_rounded_on_the_host", a_number_rounded_on_the_host},
    {"quantising_to_a_power_of_two", quantising_to_a_power_of_two},
    {"a_tensor_made_of_numbers_of_the_host", a_tensor_made_of_numbers_of_the_host},
    {"a_table_filled_by_rows", a_table_filled_by_rows},
};

}  // namespace

std::span<const Program> host_read_programs() { return programs; }

}  // namespace sinter::test::hostile
