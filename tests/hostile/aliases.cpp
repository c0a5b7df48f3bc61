#include "groups.h"
#include "programs.h"

/// What results share memory with.
namespace sinter::test::hostile {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

void the_input_itself(Session& s) {
  auto f = s.compile([](const Tensor& x) { return Tensors{x, x + 1}; });
  const Tensor x = s.randn({3});
  for (int call = 0; call < 4; ++call) f(x);
  for (int call = 0; call < 4; ++call) f(s.randn({3}));
}

void views_of_an_input(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    return Tensors{x.t(), x.slice(1, 1, 3), x[1], x.view({-1}), x.expand({2, 3, 4}), x.diagonal(), x.unsqueeze(0)};
  });
  const Tensor x = s.randn({3, 4});
  for (int call = 0; call < 4; ++call) f(x);
  for (int call = 0; call < 4; ++call) f(s.randn({20}).slice(0, 5, 17).view({3, 4}));
}

void an_input_through_another_dtype(Session& s) {
  auto f = s.compile([](const Tensor& x) { return Tensors{x.view(at::kInt), x * 2}; });
  for (int call = 0; call < 4; ++call) f(s.randn({4}));
}

void the_real_part_of_an_input(Session& s) {
  auto f = s.compile([](const Tensor& z) { return Tensors{at::real(z), at::imag(z), at::view_as_real(z)}; });
  for (int call = 0; call < 4; ++call) f(at::complex(s.randn({4}), s.randn({4})));
}

void one_result_twice(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor y = x * 3;
    return Tensors{y, y, y.view({-1}), y[0]};
  });
  for (int call = 0; call < 4; ++call) f(s.randn({2, 2}));
}

void results_that_overlap(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor y = at::relu(x);
    return Tensors{y.slice(0, 0, 4), y.slice(0, 2, 6), y.slice(0, 5, 6)};
  });
  for (int call = 0; call < 4; ++call) {
    const auto out = f(s.randn({6}));
    if (!out) continue;
    (*out)[0].fill_(7);  // the caller writes to a result: the others see it where they share memory
    for (const Tensor& tensor : *out) s.show("after a write to the first result", tensor);
  }
}

void state_itself_and_views_of_it(Session& s) {
  Tensor weight = s.randn({3, 4});
  s.watch("weight", &weight);
  auto f = s.compile([&weight](const Tensor& x) { return Tensors{weight, weight.t(), weight[2], x + weight}; });
  for (int call = 0; call < 4; ++call) f(s.randn({3, 4}));
}

void a_caller_that_writes_to_results_that_are_inputs(Session& s) {
  auto f = s.compile([](const Tensor& x) { return std::make_pair(x.view({-1}), x * 1); });
  const Tensor x = s.randn({2, 3});
  for (int call = 0; call < 5; ++call) {
    auto out = f(x);
    if (!out) continue;
    out->first.add_(1);
    out->second.add_(1);
  }
}

void results_that_are_kept(Session& s) {
  auto f = s.compile([](const Tensor& x) { return at::sigmoid(x) * 4; });
  Tensors kept;
  for (int call = 0; call < 6; ++call) {
    if (auto out = f(s.randn({33}))) kept.push_back(*out);
  }
  for (const Tensor& tensor : kept) s.show("kept", tensor);
}

void a_result_no_operator_works_on(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x; });
  for (int call = 0; call < 4; ++call) f(s.randn({2}));
}

void a_contiguous_call_that_may_copy_or_not(Session& s) {
  auto f = s.compile([](const Tensor& x) { return Tensors{x.contiguous(), x.to(at::kFloat), x.reshape({6})}; });
  const Tensor x = s.randn({2, 3});
  for (int call = 0; call < 4; ++call) f(x);
  for (int call = 0; call < 4; ++call) f(s.randn({3, 2}).t());
  for (int call = 0; call < 4; ++call) f(s.randn({2, 3}, at::kDouble));
}

void constants_as_results(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    return Tensors{at::zeros({2}, x.options()), at::arange(3, x.options()), at::full({}, 2.5, x.options()), x * 2};
  });
  for (int call = 0; call < 4; ++call) {
    const auto out = f(s.randn({2}));
    if (out) (*out)[0].fill_(9);  // must not be seen by the next call
  }
}

/// Shuffling no channels gives a view that the operator's schema does not declare: its version is not the input's.
void a_write_to_an_undeclared_view(Session& s) {
  auto f = s.compile([](const Tensor& x) { return at::channel_shuffle(x, 2).add_(1); });
  for (int call = 0; call < 5; ++call) {
    const Tensor x = s.randn({0, 4, 2, 2});
    f(x);
    s.show("version", std::to_string(x._version()));
  }
}

/// The view counts from the beginning of the storage, wherever the input lies in it.
void an_absolute_view_of_inputs_at_other_offsets(Session& s) {
  const Tensor base = s.randn({40});
  auto f = s.compile([](const Tensor& x) { return x.as_strided({3}, {1}, 0) * 2 + x.slice(0, 0, 3); });
  for (int call = 0; call < 16; ++call) f(base.slice(0, call % 7, call % 7 + 10));
}

/// No access of several elements may begin where the second view does, nor where later calls' views do. There are
/// elements enough for a GPU's kernels to take several at a time.
void views_that_begin_anywhere(Session& s) {
  static constexpr int64_t length = 1 << 16;
  auto inside = s.compile([](const Tensor& x) { return x.slice(0, 0, length) * 2 + x.slice(0, 1, length + 1).relu(); });
  auto outside = s.compile([](const Tensor& x) { return x * 2 + 1; });
  for (int call = 0; call < 4; ++call) inside(s.randn({length + 1}));
  const Tensor base = s.randn({length + 8});
  for (int call = 0; call < 8; ++call) outside(base.slice(0, call, call + length));
}

void an_offset_in_the_arithmetic(Session& s) {
  const Tensor base = s.randn({40});
  auto f = s.compile([](const Tensor& x) { return x * static_cast<double>(x.storage_offset()); });
  for (int call = 0; call < 16; ++call) f(base.slice(0, call % 7, call % 7 + 10));
}

void slices_at_other_offsets_written(Session& s) {
  const Tensor base = s.randn({40});
  s.watch("base", &base);
  auto f = s.compile([](const Tensor& x) {
    x.slice(0, 2, 4).mul_(0.5);
    return x.as_strided({2}, {1}, x.storage_offset() + 1);
  });
  for (int call = 0; call < 16; ++call) f(base.slice(0, 4 * (call % 7), 4 * (call % 7) + 10));
}

const Program programs[] = {
    {"the_input_itself", the_input_itself},
    {"views_of_an_input", views_of_an_input},
    {"an_input_through_another_dtype", an_input_through_another_dtype},
    {"the_real_part_of_an_input", the_real_part_of_an_input},
    {"one_result_twice", one_result_twice},
    {"results_that_overlap", results_that_overlap},
    {"state_itself_and_views_of_it", state_itself_and_views_of_it},
    {"a_caller_that_writes_to_results_that_are_inputs", a_caller_that_writes_to_results_that_are_inputs},
    {"results_that_are_kept", results_that_are_kept},
    {"a_result_no_operator_works_on", a_result_no_operator_works_on},
    {"a_contiguous_call_that_may_copy_or_not", a_contiguous_call_that_may_copy_or_not},
    {"a_write_to_an_undeclared_view", a_write_to_an_undeclared_view},
    {"constants_as_results", constants_as_results},
    {"an_absolute_view_of_inputs_at_other_offsets", an_absolute_view_of_inputs_at_other_offsets},
    {"views_that_begin_anywhere", views_that_begin_anywhere},
    {"an_offset_in_the_arithmetic", an_offset_in_the_arithmetic},
    {"slices_at_other_offsets_written", slices_at_other_offsets_written},
};

}  // namespace

std::span<const Program> alias_programs() { return programs; }

}  // namespace sinter::test::hostile
