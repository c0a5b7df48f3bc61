// Numbers of the host that differ from call to call: where views begin, factors of numbers, bounds, whole numbers that
// segments compute.
#include <c10/core/GradMode.h>

#include "checked.h"

namespace sinter::test {
namespace {

using at::Tensor;

class HostNumbers : public Checked {
  c10::NoGradGuard no_grad_;
};

TEST_F(HostNumbers, a_row_written_at_another_place_in_each_call_replays) {
  const Tensor kept = at::zeros({100, 16}), wanted = at::zeros({100, 16});
  auto fast = compile([&](const Tensor& x, int64_t at) { kept[at].copy_(x * 2); }, checked());
  for (int64_t call = 0; call < 100; ++call) {
    const Tensor x = at::randn({16});
    fast(x, call);
    wanted[call].copy_(x * 2);
    ASSERT_TRUE(same(kept, wanted)) << call;
  }
  EXPECT_GE(fast.stats().replayed, 96) << fast.report();
}

TEST_F(HostNumbers, a_row_written_behind_a_look_at_all_of_them_replays_at_any_place) {
  const Tensor start = at::randn({64, 4});
  const Tensor kept = start.clone(), wanted = start.clone();
  const auto program = [](Tensor queue, const Tensor& x, int64_t at) {
    const Tensor scores = at::matmul(x, queue.t()) * 2;
    queue[at].copy_(x[0]);
    return scores.relu();
  };
  auto fast = compile(program, checked());
  for (int64_t call = 0; call < 64; ++call) {
    const Tensor x = at::randn({2, 4});
    ASSERT_TRUE(same(fast(kept, x, call), program(wanted, x, call))) << call;
    ASSERT_TRUE(same(kept, wanted)) << call;
  }
  EXPECT_GE(fast.stats().replayed, 56) << fast.report();
}

TEST_F(HostNumbers, a_loop_over_rows_is_one_segment) {
  const auto program = [](const Tensor& x) {
    Tensor sum = at::zeros({16});
    for (int64_t t = 0; t < x.size(0); ++t) {
      sum = at::tanh(sum + x[t]);
      if (sum.sum().item<float>() > 1000) break;
    }
    return sum;
  };
  auto fast = compile(program, checked());
  for (const int64_t rows : {12, 12, 12, 30}) {
    const Tensor x = at::randn({rows, 16});
    ASSERT_TRUE(same(fast(x), program(x))) << rows;
  }
  EXPECT_EQ(fast.stats().replayed, 3) << fast.report();
}

TEST_F(HostNumbers, a_slice_of_another_length_is_another_size) {
  const Tensor table = at::randn({100, 8});
  const auto program = [&](int64_t length) { return (table.slice(0, 0, length) * 2).sum(0); };
  auto fast = compile(program, checked());
  for (int64_t length = 10; length < 40; ++length) ASSERT_TRUE(same(fast(length), program(length))) << length;
  EXPECT_GE(fast.stats().replayed, 27) << fast.report();
}

TEST_F(HostNumbers, a_row_that_was_met_before_its_tensor_keeps_no_view_from_being_a_step) {
  const auto program = [](const Tensor& row, const Tensor& all) { return (row * 2 + all[2]).sum() + all.t()[1].sum(); };
  auto fast = compile(program, checked());
  for (int call = 0; call < 4; ++call) {
    const Tensor all = at::randn({4, 8});
    ASSERT_TRUE(same(fast(all[1], all), program(all[1], all))) << call;
  }
  EXPECT_EQ(fast.stats().replayed, 3) << fast.report();
  EXPECT_TRUE(fast.report().entries.size() == 1) << fast.report();
}

TEST_F(HostNumbers, beside_a_number_without_dims_a_factor_is_given_on_every_call) {
  const auto program = [](const Tensor& x, const Tensor& y, double k) {
    return std::vector<Tensor>{x * k, at::add(x, y, k), at::addcdiv(x, y, y, k), x.clamp(-k, k),
                               x < k, at::lerp(x, y, k)};
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 8; ++call) {
    const Tensor x = at::randn({}), y = at::randn({});
    const auto now = fast(x, y, 0.1 * (call + 1)), wanted = program(x, y, 0.1 * (call + 1));
    for (size_t i = 0; i < now.size(); ++i) ASSERT_TRUE(same(now[i], wanted[i])) << call << " " << i;
  }
  EXPECT_EQ(fast.stats().recorded, 1) << fast.report();
}

TEST_F(HostNumbers, bounds_weights_and_fillings_are_given_on_every_call) {
  const auto program = [](const Tensor& x, const Tensor& y, double k) {
    const Tensor mask = x > k;
    return std::vector<Tensor>{mask, x.le(k), x.eq(k), at::lerp(x, y, k), y.masked_fill(mask, k), at::tanh(y).fill_(k)};
  };
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    auto fast = compile(program, checked());
    for (int call = 0; call < 10; ++call) {
      const Tensor x = at::randn({80}, dtype), y = at::randn({80}, dtype);
      const auto now = fast(x, y, 0.1 * (call + 1)), wanted = program(x, y, 0.1 * (call + 1));
      for (size_t i = 0; i < now.size(); ++i) ASSERT_TRUE(same(now[i], wanted[i], 1e-6)) << call << " " << i;
    }
    EXPECT_EQ(fast.stats().recorded, 1) << fast.report();
  }
}

TEST_F(HostNumbers, a_few_integers_may_be_read_through_a_pointer) {
  const auto program = [](const Tensor& lengths, const Tensor& x) {
    const Tensor ends = lengths.cumsum(0) + 1;
    return (x * 2).slice(0, 0, ends.const_data_ptr<int64_t>()[2]).relu() + 1;
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 4; ++call) {
    const Tensor lengths = at::tensor({2, 3, 1}, at::kLong), x = at::randn({8, 4});
    ASSERT_TRUE(same(fast(lengths, x), program(lengths, x))) << call;
  }
  EXPECT_EQ(fast.stats().replayed, 3) << fast.report();
  EXPECT_EQ(fast.report().entries.size(), 1) << fast.report();
}

TEST_F(HostNumbers, a_few_integers_behind_other_work_do_not_end_it) {
  const auto program = [](const Tensor& lengths, const Tensor& x) {
    const Tensor doubled = x * 2;
    const int64_t most = (lengths + 1).max().item<int64_t>();
    return doubled.relu() + most;
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 4; ++call) {
    const Tensor lengths = at::tensor({2, 3, 1}, at::kLong), x = at::randn({8, 4});
    ASSERT_TRUE(same(fast(lengths, x), program(lengths, x))) << call;
  }
  EXPECT_EQ(fast.report().entries.size(), 1) << fast.report();
}

TEST_F(HostNumbers, systems_that_are_solved_are_no_breaks) {
  Options options = checked();
  options.fullgraph = true;
  const auto program = [](const Tensor& a, const Tensor& b) {
    const Tensor positive = a.mm(a.t()) + at::eye(4);
    return at::linalg_solve(positive, b) + at::linalg_cholesky(positive).mm(b) + at::linalg_inv(positive).mm(b);
  };
  auto fast = compile(program, options);
  for (int call = 0; call < 4; ++call) {
    const Tensor a = at::randn({4, 4}), b = at::randn({4, 2});
    ASSERT_TRUE(same(fast(a, b), program(a, b), 1e-4)) << call;
  }
  EXPECT_EQ(fast.stats().replayed, 3) << fast.report();
  EXPECT_THROW(fast(at::full({4, 4}, std::numeric_limits<double>::quiet_NaN()), at::randn({4, 2})), c10::Error);
}

TEST_F(HostNumbers, what_looks_at_computed_indices_begins_the_next_segment) {
  const auto program = [](const Tensor& x, const Tensor& scores) {
    const Tensor order = scores.argsort(0, false);
    return (x.index_select(0, order) * 2).tanh();
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 4; ++call) {
    const Tensor x = at::randn({80, 3}), scores = at::randn({80});
    ASSERT_TRUE(same(fast(x, scores), program(x, scores))) << call;
  }
  const Report report = fast.report();
  ASSERT_EQ(report.entries.size(), 2) << report;
}

}  // namespace
}  // namespace sinter::test
