// Where tensors lie in their storages and how they read them, and numbers that are looked at before their operators
// are put off.
#include <c10/core/GradMode.h>

#include <stdexcept>

#include "checked.h"

namespace sinter::test {
namespace {

using at::Tensor;

class Places : public Checked {
  c10::NoGradGuard no_grad_;
};

Tensor longs(std::vector<int64_t> numbers) { return at::tensor(numbers, at::kLong); }

TEST_F(Places, slices_of_one_tensor_replay_wherever_they_begin) {
  const Tensor data = at::randn({64, 4});
  const auto program = [](const Tensor& x) { return at::tanh(x) * 2 + x.slice(0, 1, 2); };
  auto fast = compile(program, checked());
  for (int64_t call = 0; call < 16; ++call) {
    const Tensor x = data.slice(0, 4 * call, 4 * call + 4);
    ASSERT_TRUE(same(fast(x), program(x))) << call;
  }
  EXPECT_EQ(fast.stats().recorded, 1) << fast.report();
  EXPECT_EQ(fast.stats().replayed, 15) << fast.report();
}

TEST_F(Places, a_view_of_a_slice_lies_where_eagers_does) {
  const Tensor data = at::randn({64});
  auto fast = compile([](const Tensor& x) { return x.view({2, 4}).t(); }, checked());
  for (int64_t call = 0; call < 8; ++call) {
    const Tensor x = data.slice(0, 4 * call, 4 * call + 8);
    const Tensor view = fast(x);
    EXPECT_EQ(view.storage_offset(), x.storage_offset());
    EXPECT_TRUE(view.is_alias_of(data));
    ASSERT_TRUE(same(view, x.view({2, 4}).t())) << call;
  }
  EXPECT_EQ(fast.stats().replayed, 7) << fast.report();
}

TEST_F(Places, two_slices_that_are_only_read_may_overlap_or_not) {
  const Tensor data = at::randn({64});
  const auto program = [](const Tensor& a, const Tensor& b) { return a * 2 + b; };
  auto fast = compile(program, checked());
  for (const int64_t distance : {4, 4, 4, 8, 8, 4}) {
    const Tensor a = data.slice(0, 16, 24), b = data.slice(0, 16 + distance, 24 + distance);
    ASSERT_TRUE(same(fast(a, b), program(a, b))) << distance;
  }
  EXPECT_EQ(fast.stats().recorded, 1) << fast.report();
}

TEST_F(Places, indices_in_range_end_no_segment) {
  const auto program = [](const Tensor& x, const Tensor& index) { return (x * 2).index_select(0, index).relu() + 1; };
  auto fast = compile(program, checked());
  for (int call = 0; call < 4; ++call) {
    const Tensor x = at::randn({5, 3});
    const Tensor index = longs({call, 4, 0});
    ASSERT_TRUE(same(fast(x, index), program(x, index))) << call;
  }
  const Report report = fast.report();
  ASSERT_EQ(report.entries.size(), 1) << report;
  EXPECT_EQ(report.entries[0].captured_calls, 4) << report;
  EXPECT_EQ(fast.stats().replayed, 3);
}

TEST_F(Places, an_index_out_of_range_throws_where_it_stands) {
  Tensor before = at::zeros({1}), behind = at::zeros({1});
  auto fast = compile(
      [&](const Tensor& x, const Tensor& index) {
        before.add_(1);
        const Tensor rows = (x * 2).index_select(0, index);
        behind.add_(1);
        return rows + behind;
      },
      checked());
  for (int call = 0; call < 9; ++call) {
    const Tensor x = at::randn({5, 3});
    if (call % 3 == 2) {
      EXPECT_THROW(fast(x, longs({0, 5})), c10::Error) << call;
    } else {
      fast(x, longs({0, 4}));
    }
    EXPECT_EQ(before.item<float>(), static_cast<float>(call + 1));
    EXPECT_EQ(behind.item<float>(), static_cast<float>(call + 1 - (call + 1) / 3));
  }
  EXPECT_GE(fast.stats().replayed, 4) << fast.report();
}

TEST_F(Places, integers_that_are_divided_end_no_segment) {
  const auto program = [](const Tensor& x, const Tensor& divisor) {
    const Tensor whole = (x * 100).to(at::kLong);
    return at::remainder(at::floor_divide(whole, divisor) * 3, 7) + 1;
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 4; ++call) {
    const Tensor x = at::randn({100});
    const Tensor divisor = at::arange(1, 101, at::kLong) + call;
    ASSERT_TRUE(at::equal(fast(x, divisor), program(x, divisor))) << call;
  }
  EXPECT_EQ(fast.report().entries.size(), 1) << fast.report();
  EXPECT_THROW(fast(at::randn({100}), at::arange(0, 100, at::kLong)), c10::Error);
}

TEST_F(Places, indices_that_a_segment_computes_end_it) {
  const auto program = [](const Tensor& x) { return at::gather(x + 1, 0, at::argsort(x * 2, int64_t{0})); };
  auto fast = compile(program, checked());
  for (int call = 0; call < 4; ++call) {
    const Tensor x = at::randn({100});
    ASSERT_TRUE(same(fast(x), program(x))) << call;
  }
  EXPECT_GE(fast.report().entries.size(), 1) << fast.report();
}

TEST_F(Places, conjugates_end_no_segment) {
  const auto program = [](const Tensor& z) {
    const Tensor y = z * 2;
    return at::real(y * y.conj()) + at::imag(at::matmul(y.conj(), y));
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 4; ++call) {
    const Tensor z = at::randn({3, 3}, at::kComplexFloat);
    ASSERT_TRUE(same(fast(z), program(z))) << call;
  }
  EXPECT_EQ(fast.report().entries.size(), 1) << fast.report();
  EXPECT_EQ(fast.stats().breaks, 0) << fast.report();
  EXPECT_EQ(fast.stats().replayed, 3) << fast.report();
}

TEST_F(Places, tensors_without_data_cost_nothing_and_end_nothing) {
  const auto program = [](const Tensor& x) {
    const Tensor y = x * 2;
    const Tensor shape = at::matmul(at::empty({3, 2}, at::kMeta), at::empty({2, 5}, at::kMeta));
    return y + static_cast<double>(shape.size(1));
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 4; ++call) {
    const Tensor x = at::randn({3});
    ASSERT_TRUE(same(fast(x), program(x))) << call;
  }
  EXPECT_EQ(fast.report().entries.size(), 1) << fast.report();
  EXPECT_EQ(fast.stats().breaks, 0) << fast.report();
}

}  // namespace
}  // namespace sinter::test
