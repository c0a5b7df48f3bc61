#include "groups.h"
#include "programs.h"

/// Programs that were found by the fuzzer (tests/fuzz) and shrunk.
namespace sinter::test::hostile {
namespace {

using at::Tensor;

void one_view_of_an_input_twice(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor row = x.unsqueeze(0).expand({2, -1});
    return std::vector<Tensor>{row, row};
  });
  for (int call = 0; call < 4; ++call) f(s.randn({3}));
}

void a_result_and_a_view_of_it_of_the_same_type(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor half = at::floor(x * 0.5);
    return std::vector<Tensor>{half.movedim(0, 0), half};
  });
  for (int call = 0; call < 4; ++call) {
    const auto out = f(s.randn({1, 1}));
    if (out) (*out)[0].fill_(7);
  }
}

void equal_results_that_share_no_memory(Session& s) {
  auto f = s.compile([](const Tensor& x) { return std::vector<Tensor>{x + 1, x + 1}; });
  for (int call = 0; call < 4; ++call) {
    const auto out = f(s.randn({3}));
    if (out) (*out)[0].fill_(7);
  }
}

void a_square_input_written_through_its_transpose(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x.t().relu_(); });
  for (int call = 0; call < 4; ++call) f(s.randn({4, 4}));
}

void a_comparison_of_filled_tensors(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor filled = at::full_like(x, -1.25);
    return at::where(filled > filled, x, x * 2);
  });
  for (int call = 0; call < 4; ++call) f(s.randn({1, 1}));
}

void an_expanded_input_that_is_filled(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x.fill_(2); });
  for (int call = 0; call < 4; ++call) f(s.randn({1}).expand({2}));
}

void windows_that_overlap_written_in_place(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x.unfold(0, 2, 1).mul_(0.1); });
  for (int call = 0; call < 4; ++call) f(s.randn({4}));
}

void a_pooling_that_no_operator_computes(Session& s) {
  auto f = s.compile([](const Tensor& x) { return at::max_pool1d(x, {2}); });
  Tensor x = s.randn({1, 2, 6});
  for (int call = 0; call < 6; ++call) {
    if (call == 4) x.neg_();
    f(x);
  }
}

void a_column_updated_by_an_element_of_itself(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x.select(1, 1).add_(1).addcmul_(x.diagonal()[1], x.diagonal()[1]); });
  for (int call = 0; call < 4; ++call) f(s.randn({4, 2}));
}

void a_column_updated_by_another(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x.select(1, 1).add_(x.select(1, 0)); });
  for (int call = 0; call < 4; ++call) f(s.randn({4, 2}));
}

void a_write_to_the_imaginary_part_of_what_was_real(Session& s) {
  auto f = s.compile([](const Tensor& x) { return at::imag(at::view_as_complex(at::stack({x, x}, -1))).fill_(0.25); });
  for (int call = 0; call < 4; ++call) f(s.randn({2, 3}));
}

void a_write_to_a_complex_input_with_gaps(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x.mul_(0.5) + 1; });
  for (int call = 0; call < 4; ++call) f(s.randn({3, 4}, at::kComplexFloat).slice(1, 0, 4, 2));
}

void views_of_complex_halves(Session& s) {
  auto f = s.compile([](const Tensor& x) { return (-at::complex(x, x)).contiguous().slice(0, 1); });
  for (int call = 0; call < 4; ++call) f(s.randn({4, 3}, at::kHalf));
}

void a_bound_of_logit_that_rounds_to_one(Session& s) {
  auto f = s.compile([](const Tensor& x) { return at::logit(at::sigmoid(x), 1e-3); }, {.numerics = Numerics::eager});
  for (int call = 0; call < 4; ++call) f(s.randn({4, 2}, at::kBFloat16) * 9);
}

void a_fill_under_a_mask_of_zeros(Session& s) {
  auto f = s.compile([](const Tensor& x) { return at::masked_fill(x.zero_(), x.to(at::kBool), -1); });
  for (int call = 0; call < 4; ++call) f(s.randn({1, 1}));
}

void a_number_that_one_course_takes_and_another_does_not(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x * x.mean().item<double>(); });
  for (const double mean : {1.0, -1.0, -1.2, -1.1, -1.15, 1.0}) f(at::full({3}, mean, s.options()));
}

void an_index_out_of_range_that_nobody_reads(Session& s) {
  auto f = s.compile([](const Tensor& x, const Tensor& index) {
    (void)at::gather(x, 0, index);
    return x + 1;
  });
  const int64_t refused = s.on_cuda() ? 2 : 7;  // a GPU refuses an index by ending the process
  for (const int64_t index : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{1}, refused, int64_t{2}}) {
    f(s.counting({3}), at::full({1}, index, s.options(at::kLong)));
  }
}

void two_views_of_state_of_the_same_type(Session& s) {
  Tensor state = s.randn({2, 1});
  s.watch("state", &state);
  auto f = s.compile([&] {
    const Tensor row = state.narrow(0, 1, 1);
    return std::vector<Tensor>{row.transpose(1, 1).cumsum_(1), row, row};
  });
  for (int call = 0; call < 4; ++call) f();
}

void two_views_of_an_input_of_the_same_type(Session& s) {
  auto f = s.compile([](const Tensor& x) { return std::vector<Tensor>{x.view({-1}), x.view({-1}), x}; });
  for (int call = 0; call < 4; ++call) f(s.randn({3}));
}

void a_library_writes_to_what_a_wider_product_was_written_to(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x.to(at::kHalf).mul_(x).cumsum_(0); });
  for (int call = 0; call < 4; ++call) f(s.randn({4, 3}));
}

void a_library_writes_to_a_transposed_output_argument(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    Tensor out = at::zeros({3, 4}, x.options()).t();
    return at::mul_out(out, x, x).cumsum_(0);
  });
  for (int call = 0; call < 4; ++call) f(s.randn({4, 3}));
}

void a_division_by_zero_that_nobody_reads(Session& s) {
  const Tensor sum = s.randn({3});
  s.watch("sum", &sum);
  auto f = s.compile([&sum](const Tensor& x, const Tensor& divisor) {
    sum.add_(1);
    const Tensor row = x.mul_(2);
    (void)at::floor_divide(at::full_like(divisor, 7), divisor);
    sum.add_(10);
    return row + 1;
  });
  const int64_t refused = s.on_cuda() ? 2 : 0;  // a GPU divides by zero, and answers what it will
  for (const int64_t divisor : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{1}, refused, int64_t{2}}) {
    f(s.randn({3}), at::full({2}, divisor, s.options().dtype(at::kLong)));
  }
}

/// A GPU refuses such a probability by ending the process.
void a_probability_that_is_refused_after_draws(Session& s) {
  auto f = s.compile([&](const Tensor& x) {
    x.mul_(2);
    const Tensor chance = s.on_cuda() ? x.sigmoid() : x;
    return at::bernoulli(chance);
  });
  for (const double last : {0.25, 0.5, 0.125, 0.25, 0.75, 0.5}) {
    const Tensor x = at::full({8}, 0.25, s.options());
    x[6].fill_(last);
    f(x);
  }
}

void a_probability_that_is_refused_after_a_read(Session& s) {
  auto f = s.compile([&](const Tensor& x) {
    x.mul_(2);
    const Tensor chance = s.on_cuda() ? x.sigmoid() : x;
    return (x[0] > 1).item<bool>() ? x + 1 : at::bernoulli(chance);
  });
  for (const double last : {0.25, 0.5, 0.125, 0.25, 0.75, 0.5}) {
    const Tensor x = at::full({8}, 0.25, s.options());
    x[6].fill_(last);
    f(x);
  }
}

void a_number_added_to_halves(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    return std::vector<Tensor>{at::floor(x + 0.37), at::floor(at::sub(x, -0.37)), at::floor(x * -1 - 0.37)};
  });
  for (int call = 0; call < 4; ++call) f(at::full({3}, -0.37, s.options(at::kHalf)));
}

/// The first is as long as the shorter side, the second ends where the argument does, or before.
void views_that_end_at_the_shorter_side(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor diagonal = x.diagonal(0, 1, 0).fill_(0.25);
    return std::vector<Tensor>{diagonal, x.slice(0, 0, 7, 2) + 1};
  });
  for (const int64_t rows : {3, 3, 3, 19, 19, 12, 20, 4, 20, 33, 12}) f(s.randn({rows, 5}));
}

void a_number_made_of_a_size(Session& s) {
  auto f = s.compile([](const Tensor& x) { return at::add(x, x.size(0) + 4); });
  for (const int64_t rows : {4, 4, 4, 6, 6, 7, 5, 14, 12}) f(s.randn({rows}));
}

void an_element_of_an_expanded_input_written(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor first = x.narrow(0, 0, 1).squeeze(0);
    first.mul_(2);
    return x;
  });
  for (int call = 0; call < 4; ++call) f(s.randn({1}).expand({2}));
}

/// ATen's kernels round the square: for the CPU that of bfloat16, for CUDA that of both halves.
void a_cube_of_halves(Session& s, at::ScalarType dtype) {
  auto f = s.compile(
      [](const Tensor& x) { return std::vector<Tensor>{at::pow(x, 3), at::floor(at::pow(x, 3) * 2), at::pow(x, -2)}; },
      {.numerics = Numerics::eager});
  for (int call = 0; call < 4; ++call) f(s.randn({40, 16}, dtype));
}

void a_cube_of_bfloats(Session& s) { a_cube_of_halves(s, at::kBFloat16); }
void a_cube_of_f16(Session& s) { a_cube_of_halves(s, at::kHalf); }

/// The view sees an element between those of the argument, which no value of the argument holds.
void a_write_between_the_elements_of_an_input(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor front = x.as_strided({2}, {1}).mul_(0.5);
    x.fill_(-0.5);
    return front;
  });
  for (int call = 0; call < 4; ++call) f(s.randn({1, 4}).slice(-1, 0, 4, 2));
}

void a_look_between_the_elements_of_an_input(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x.as_strided({2}, {1}).mul(0.5); });
  for (int call = 0; call < 4; ++call) f(s.randn({1, 4}).slice(-1, 0, 4, 2));
}

/// The size of what is chosen depends on data; where too little is, eager refuses the view.
void a_view_beyond_what_was_chosen(Session& s) {
  const c10::NoGradGuard no_grad;
  auto f = s.compile([](const Tensor& x) {
    const Tensor chosen = at::masked_select(x, x > 0);
    (void)chosen.as_strided({3}, {2});
    return x + 1;
  });
  for (const int64_t positive : {5, 5, 5, 7, 7, 7, 6, 6, 4, 3, 6, 8}) {
    Tensor x = s.randn({12}).abs().neg();
    x.narrow(0, 0, positive).fill_(2);
    f(x);
  }
}

/// A power of one is a copy, and the result lies in it.
void bits_of_a_first_power(Session& s) {
  auto f = s.compile([](const Tensor& x) { return at::pow(x, int64_t{1}).view(at::kByte); });
  for (int call = 0; call < 4; ++call) f(s.integers(100, {1, 99}, at::kInt));
}

/// Small state on the CPU is taken for content until it is written.
void the_parts_of_scaled_complex_state(Session& s) {
  Tensor scale = s.randn({2, 1}, at::kComplexFloat);
  s.watch("scale", &scale);
  auto f = s.compile([&](const Tensor& x) { return at::view_as_real(scale.mul_(0.5)).add_(x.sum()); });
  for (int call = 0; call < 4; ++call) f(s.randn({3}));
}

void the_parts_of_scaled_complex_state_returned(Session& s) {
  Tensor scale = s.randn({2, 1}, at::kComplexFloat);
  s.watch("scale", &scale);
  auto f = s.compile([&](const Tensor&) { return at::view_as_real(scale.mul_(0.5)); });
  for (int call = 0; call < 4; ++call) f(s.randn({3}));
}

/// Whatever a call that threw still held would keep the replaced tensor alive, which is how it is seen. A GPU does not
/// refuse an index, it ends.
void state_replaced_behind_calls_that_threw(Session& s) {
  Tensor table = s.randn({});
  s.watch("table", &table);
  auto f = s.compile([&](const Tensor& index) { return at::gather(table, 0, index); });
  for (int call = 0; call < 8; ++call) {
    if (call == 5) table = s.randn({});
    const bool refused = !s.on_cuda() && (call == 3 || call == 4);
    f(at::full({}, refused ? 5 : 0, s.options(at::kLong)));
  }
}

/// A zero that equals its bound keeps its sign or not, as ATen has it on the device.
void the_sign_of_a_clamped_zero(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor zero = x * -0.0;
    return std::vector<Tensor>{at::copysign(x, at::relu(zero)), at::copysign(x, at::clamp(zero, 0, 1)),
                               at::copysign(x, at::clamp_min(zero, 0)), at::copysign(x, at::clamp_max(zero, 0)),
                               at::copysign(x, at::hardtanh(zero, 0, 2))};
  });
  for (int call = 0; call < 4; ++call) f(s.randn({17}));
}

/// Beside an intrinsic for an extreme, LLVM 19 takes any other one of the same operands for an extreme, and ends the
/// process.
void a_maximum_of_a_copied_sign(Session& s) {
  auto f = s.compile([](const Tensor& x, const Tensor& y) {
    return std::vector<Tensor>{at::maximum(at::copysign(x, y), at::maximum(y, x)),
                               at::fmin(at::copysign(x, y), at::fmin(y, x))};
  });
  for (int call = 0; call < 4; ++call) f(s.randn({5, 7}), s.randn({5, 7}));
}

void a_minimum_of_a_sum_with_a_product(Session& s) {
  auto f = s.compile([](const Tensor& x, const Tensor& y, const Tensor& z) {
    return std::vector<Tensor>{at::minimum(at::addcmul(z, x, y), at::minimum(x, y)),
                               at::fmax(at::addcmul(z, x, y), at::fmax(x, y))};
  });
  for (int call = 0; call < 4; ++call) f(s.randn({5, 7}), s.randn({5, 7}), s.randn({5, 7}));
}

const Program programs[] = {
    {"a_maximum_of_a_copied_sign", a_maximum_of_a_copied_sign},
    {"a_minimum_of_a_sum_with_a_product", a_minimum_of_a_sum_with_a_product},
    {"the_sign_of_a_clamped_zero", the_sign_of_a_clamped_zero},
    {"state_replaced_behind_calls_that_threw", state_replaced_behind_calls_that_threw},
    {"the_parts_of_scaled_complex_state", the_parts_of_scaled_complex_state},
    {"the_parts_of_scaled_complex_state_returned", the_parts_of_scaled_complex_state_returned},
    {"bits_of_a_first_power", bits_of_a_first_power},
    {"a_write_between_the_elements_of_an_input", a_write_between_the_elements_of_an_input},
    {"a_cube_of_bfloats", a_cube_of_bfloats, Numbers::exact},
    {"a_cube_of_f16", a_cube_of_f16, Numbers::exact},
    {"a_look_between_the_elements_of_an_input", a_look_between_the_elements_of_an_input},
    {"a_view_beyond_what_was_chosen", a_view_beyond_what_was_chosen},
    {"views_that_end_at_the_shorter_side", views_that_end_at_the_shorter_side},
    {"two_views_of_state_of_the_same_type", two_views_of_state_of_the_same_type},
    {"two_views_of_an_input_of_the_same_type", two_views_of_an_input_of_the_same_type},
    {"a_library_writes_to_what_a_wider_product_was_written_to",
     a_library_writes_to_what_a_wider_product_was_written_to},
    {"a_library_writes_to_a_transposed_output_argument", a_library_writes_to_a_transposed_output_argument},
    {"a_number_added_to_halves", a_number_added_to_halves},
    {"a_probability_that_is_refused_after_draws", a_probability_that_is_refused_after_draws},
    {"a_probability_that_is_refused_after_a_read", a_probability_that_is_refused_after_a_read},
    {"one_view_of_an_input_twice", one_view_of_an_input_twice},
    {"a_result_and_a_view_of_it_of_the_same_type", a_result_and_a_view_of_it_of_the_same_type},
    {"equal_results_that_share_no_memory", equal_results_that_share_no_memory},
    {"a_square_input_written_through_its_transpose", a_square_input_written_through_its_transpose},
    {"a_comparison_of_filled_tensors", a_comparison_of_filled_tensors},
    {"an_expanded_input_that_is_filled", an_expanded_input_that_is_filled},
    {"a_number_made_of_a_size", a_number_made_of_a_size},
    {"an_element_of_an_expanded_input_written", an_element_of_an_expanded_input_written},
    {"windows_that_overlap_written_in_place", windows_that_overlap_written_in_place},
    {"a_column_updated_by_an_element_of_itself", a_column_updated_by_an_element_of_itself},
    {"a_column_updated_by_another", a_column_updated_by_another},
    {"a_write_to_the_imaginary_part_of_what_was_real", a_write_to_the_imaginary_part_of_what_was_real},
    {"a_write_to_a_complex_input_with_gaps", a_write_to_a_complex_input_with_gaps},
    {"views_of_complex_halves", views_of_complex_halves},
    {"a_bound_of_logit_that_rounds_to_one", a_bound_of_logit_that_rounds_to_one},
    {"a_fill_under_a_mask_of_zeros", a_fill_under_a_mask_of_zeros},
    {"a_number_that_one_course_takes_and_another_does_not", a_number_that_one_course_takes_and_another_does_not},
    {"an_index_out_of_range_that_nobody_reads", an_index_out_of_range_that_nobody_reads},
    {"a_division_by_zero_that_nobody_reads", a_division_by_zero_that_nobody_reads},
    {"a_pooling_that_no_operator_computes", a_pooling_that_no_operator_computes},
};

}  // namespace

std::span<const Program> fuzzed_programs() { return programs; }

}  // namespace sinter::test::hostile
