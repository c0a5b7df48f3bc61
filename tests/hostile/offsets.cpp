#include <algorithm>
#include <stdexcept>

#include "groups.h"
#include "programs.h"

/// Tensors that lie somewhere else in their storage on every call. Offsets move by whole vectors of 16 bytes where a
/// program does not say otherwise.
namespace sinter::test::hostile {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
namespace nn = torch::nn;

constexpr int64_t kStep = 4;  // elements of f32 in 16 bytes

void batches_cut_out_of_one_tensor(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(nn::Linear(4, 2));
  torch::optim::SGD optimizer(layer->parameters(), 0.1);
  const Tensor data = s.randn({40, 4});
  auto f = s.compile([&](const Tensor& x) {
    optimizer.zero_grad();
    const Tensor loss = layer->forward(x).pow(2).mean();
    loss.backward();
    optimizer.step();
    return loss.detach();
  });
  for (int64_t call = 0; call < 9; ++call) f(data.slice(0, 4 * call, 4 * call + 4));
}

/// Views of the argument show where in its memory they lie.
void views_of_a_slice_that_moves(Session& s) {
  const Tensor base = s.randn({80});
  auto f = s.compile([](const Tensor& x) {
    return std::make_pair(Tensors{x, x.slice(0, 2, 5), x.view({2, 4}).t(), x[3], x * 2, x.view(at::kInt)},
                          x.slice(0, 2, 5).storage_offset());
  });
  for (int64_t call = 0; call < 8; ++call) f(base.slice(0, kStep * call, kStep * call + 8));
}

void a_slice_that_moves_and_is_written(Session& s) {
  Tensor base = s.randn({80});
  s.watch("base", &base);
  auto f = s.compile([](const Tensor& x) {
    x.slice(0, 0, 2).mul_(3);
    const Tensor y = x + 1;
    x.view({2, 4})[1].add_(y.slice(0, 0, 4));
    return y * x;
  });
  for (int64_t call = 0; call < 9; ++call) f(base.slice(0, kStep * call, kStep * call + 8));
}

/// The second lies behind the first, in some calls nearer, and then in it.
void two_slices_that_move(Session& s) {
  Tensor base = s.randn({80});
  s.watch("base", &base);
  auto f = s.compile([](const Tensor& a, const Tensor& b) {
    a.add_(1);
    return a * b + b;
  });
  for (int64_t call = 0; call < 16; ++call) {
    const int64_t first = kStep * (call % 8);
    const int64_t distance = call % 5 == 4 ? kStep : 2 * kStep;
    f(base.slice(0, first, first + 8), base.slice(0, first + distance, first + distance + 8));
  }
}

/// In some calls one of them is the other, or lies in it.
void two_slices_that_are_read_before_one_is_written(Session& s) {
  Tensor base = s.randn({80});
  s.watch("base", &base);
  auto f = s.compile([](const Tensor& a, const Tensor& b) {
    const Tensor sum = a + b;
    a.mul_(0.5);
    return sum * b;
  });
  for (int64_t call = 0; call < 16; ++call) {
    const int64_t distance = call % 5 == 3 ? 0 : call % 5 == 4 ? kStep : 2 * kStep;
    f(base.slice(0, kStep * call, kStep * call + 8),
      base.slice(0, kStep * call + distance, kStep * call + distance + 8));
  }
}

void rows_drawn_with_repetition(Session& s) {
  const Tensor base = s.randn({5, 4});
  auto f = s.compile([](const Tensors& rows) { return at::stack(rows).mul(2).sum(0) + rows[0] * rows[2]; });
  for (int64_t call = 0; call < 16; ++call) f(Tensors{base[call % 5], base[call * 3 % 5], base[call / 2 % 5]});
}

/// The second lies before the first.
void a_slice_before_the_one_that_came_first(Session& s) {
  Tensor base = s.randn({80});
  s.watch("base", &base);
  auto f = s.compile([](const Tensor& a, const Tensor& b) { return (a * 2 + b).sum() + b.mul_(0.5); });
  for (int64_t call = 1; call < 9; ++call) {
    f(base.slice(0, kStep * call, kStep * call + 4), base.slice(0, kStep * call - 4, kStep * call));
  }
}

/// Complex numbers begin at every second element only: LibTorch refuses the view elsewhere.
void complex_views_of_slices_at_any_element(Session& s) {
  const Tensor base = s.randn({80});
  auto f = s.compile([](const Tensor& x) {
    const Tensor doubled = x * 2;
    return Tensors{doubled, at::view_as_complex(x.view({4, 2})) * 2};
  });
  for (int64_t call = 0; call < 4; ++call) f(base.slice(0, 2 * call, 2 * call + 8));
  for (int64_t call = 0; call < 12; ++call) f(base.slice(0, call, call + 8));
}

void doubles_in_a_slice_of_floats(Session& s) {
  const Tensor base = s.randn({80});
  auto f = s.compile([](const Tensor& x, const Tensor& y) { return Tensors{x * 2 + 1, y + 1}; });
  const Tensor doubles = base.view(at::kDouble);
  for (int64_t call = -2; call < 12; ++call) {
    const int64_t first = std::max<int64_t>(call, 0);
    f(base.slice(0, first, first + 4), doubles.slice(0, (first + 1) / 2, (first + 1) / 2 + 4));
  }
}

/// An absolute offset and one that is computed from that of the argument.
void views_that_count_from_the_storage(Session& s) {
  Tensor base = s.randn({80});
  s.watch("base", &base);
  auto f = s.compile([](const Tensor& x) {
    const Tensor inside = x.as_strided({4}, {2}, x.storage_offset() + 3);
    inside.mul_(0.5);
    return Tensors{inside + 1, x.as_strided({3}, {1}, 30), x.as_strided({3}, {1}) * 2, x + 1};
  });
  for (int64_t call = -2; call < 14; ++call) {
    const int64_t first = kStep * (std::max<int64_t>(call, 0) % 7);
    f(base.slice(0, first, first + 40));
  }
}

/// What a branch that is new takes is recorded while its tensors lie elsewhere than those of the first call.
void branches_met_in_slices_that_move(Session& s) {
  Tensor base = s.randn({80});
  s.watch("base", &base);
  int64_t calls = 0;
  auto f = s.compile([&calls](const Tensor& x) {
    const Tensor y = x.slice(0, 4, 8) * 2;
    if (++calls % 3 == 0) return y + x.slice(0, 1, 5).neg_();
    if (calls % 7 == 0) throw std::runtime_error("the seventh call");
    return x.as_strided({4}, {1}, x.storage_offset() + 2) - y;
  });
  for (int64_t call = 0; call < 24; ++call) f(base.slice(0, kStep * (call % 6), kStep * (call % 6) + 12));
}

/// Frozen state is known by the memory it lies in; here another part of the same takes its place.
void frozen_rows_of_one_table(Session& s) {
  const Tensor table = s.randn({6, 4});
  Tensor row = table[0];
  Options options;
  options.freeze = true;
  auto f = s.compile([&row](const Tensor& x) { return x * at::exp(row).mul(2) + row; }, options);
  for (int64_t call = 0; call < 15; ++call) {
    row = table[call / 4 % 6];
    f(s.randn({4}));
  }
}

const Program programs[] = {
    {"batches_cut_out_of_one_tensor", batches_cut_out_of_one_tensor},
    {"views_of_a_slice_that_moves", views_of_a_slice_that_moves},
    {"a_slice_that_moves_and_is_written", a_slice_that_moves_and_is_written},
    {"two_slices_that_move", two_slices_that_move},
    {"two_slices_that_are_read_before_one_is_written", two_slices_that_are_read_before_one_is_written},
    {"rows_drawn_with_repetition", rows_drawn_with_repetition},
    {"a_slice_before_the_one_that_came_first", a_slice_before_the_one_that_came_first},
    {"complex_views_of_slices_at_any_element", complex_views_of_slices_at_any_element},
    {"doubles_in_a_slice_of_floats", doubles_in_a_slice_of_floats},
    {"views_that_count_from_the_storage", views_that_count_from_the_storage},
    {"branches_met_in_slices_that_move", branches_met_in_slices_that_move},
    {"frozen_rows_of_one_table", frozen_rows_of_one_table},
};

}  // namespace

std::span<const Program> offset_programs() { return programs; }

}  // namespace sinter::test::hostile
