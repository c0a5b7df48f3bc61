// Whose memory results are, and what the host does with memory itself, under Replay::checked.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sinter/sinter.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checked.h"

namespace sinter::test {
namespace {

using at::Tensor;

TEST_F(Checked, views_under_inference_mode_are_what_their_bases_are) {
  const c10::InferenceMode inference;
  const auto seen = [](auto&& program, bool inside) {
    Tensor x;
    {
      const c10::InferenceMode outside(inside);
      x = at::zeros({100}, at::kInt);
    }
    const Tensor view = program(x);
    return std::pair(view.is_inference(), x.is_inference() ? 0 : x._version());
  };
  const auto other_dtype = [](const Tensor& x) { return x.view(at::kByte).add_(1); };
  const auto part = [](const Tensor& x) { return x.slice(0, 1).add_(1); };
  auto fast_other_dtype = compile(other_dtype, checked());
  auto fast_part = compile(part, checked());
  for (int call = 0; call < 4; ++call) {
    for (const bool inside : {false, true}) {
      EXPECT_EQ(seen(fast_other_dtype, inside), seen(other_dtype, inside)) << call << inside;
      EXPECT_EQ(seen(fast_part, inside), seen(part, inside)) << call << inside;
    }
  }
}

TEST_F(Checked, products_into_other_strides_run_the_host_code_once) {
  const c10::NoGradGuard no_grad;
  int calls = 0;
  const auto program = [&](const Tensor& a, const Tensor& out) {
    ++calls;
    Tensor into = out;
    return at::matmul_out(into, a.clone(), out.clone()) + 1;
  };
  auto fast = compile(program, checked());
  for (int call = 1; call <= 6; ++call) {
    const Tensor a = at::randn({1, 1, 2, 2});
    const Tensor out = at::randn({2, 2, 2, 1}).contiguous(at::MemoryFormat::ChannelsLast);
    const Tensor other = out.clone();
    const Tensor expected = program(a, other);
    EXPECT_TRUE(same(fast(a, out), expected)) << call;
    EXPECT_TRUE(same(out, other)) << call;
    EXPECT_EQ(out.strides(), other.strides()) << call;
    EXPECT_EQ(calls, 2 * call);
  }
  EXPECT_GE(fast.stats().replayed, 3) << fast.report().text();
}

TEST_F(Checked, results_are_fresh_and_views_share_memory) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x) {
    const Tensor y = x + 1;
    return std::vector<Tensor>{y, y.t(), y.select(0, 1)};
  };
  auto fast = compile(program, checked());
  std::vector<Tensor> before;
  for (int call = 0; call < 4; ++call) {
    const Tensor x = at::randn({4, 5});
    const auto now = fast(x);
    for (size_t i = 0; i < 3; ++i) ASSERT_TRUE(same(now[i], program(x)[i])) << call << " " << i;
    EXPECT_TRUE(now[1].is_alias_of(now[0]));
    EXPECT_TRUE(now[2].is_alias_of(now[0]));
    if (!before.empty()) {
      EXPECT_FALSE(now[0].is_alias_of(before[0]));
    }
    before = now;
  }
  EXPECT_EQ(fast.stats().replayed, 3);
}

TEST_F(Checked, whoever_keeps_a_tensor_finds_its_data) {
  const c10::NoGradGuard no_grad;
  Tensor kept;
  const auto program = [&](const Tensor& x) {
    kept = x * 3;
    return kept + 1;
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 5; ++call) {
    const Tensor x = at::randn({7});
    ASSERT_TRUE(same(fast(x), x * 3 + 1));
    ASSERT_TRUE(same(kept, x * 3));
  }
  EXPECT_EQ(fast.stats().replayed, 4);
}

TEST_F(Checked, raw_memory_is_never_read_before_it_is_there) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x) {
    const Tensor y = x * 2;
    return y.const_data_ptr<float>()[0] > 0 ? y + 1 : y - 1;
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 6; ++call) {
    const Tensor x = at::randn({5});
    ASSERT_TRUE(same(fast(x), program(x))) << call;
  }
  const Report report = fast.report();
  ASSERT_FALSE(report.entries.empty());
  EXPECT_EQ(report.entries.back().breaks.size(), 1U) << report;
}

TEST_F(Checked, tensors_that_the_host_fills_are_inputs) {
  const c10::NoGradGuard no_grad;
  float number = 0;
  const auto program = [&](const Tensor& x) {
    number += 1;
    const Tensor rows = at::empty({3, 4});
    for (int i = 0; i < 3; ++i) rows[i] = x * (i + 1);
    return rows + at::tensor({number, 2.0F, 3.0F, 4.0F});
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 6; ++call) {
    const Tensor x = at::randn({4});
    const Tensor now = fast(x);
    number -= 1;
    ASSERT_TRUE(same(now, program(x))) << call;
  }
  EXPECT_GE(fast.stats().replayed, 4) << fast.report();
}

TEST_F(Checked, memory_that_is_asked_for_after_a_write_is_an_error) {
  const c10::NoGradGuard no_grad;
  Tensor total = at::zeros({2});
  const auto program = [&](const Tensor& x) {
    total.add_(x);
    const bool positive = total.sum().item<float>() > 0;
    const Tensor y = x * 2;
    return positive && y.const_data_ptr<float>()[0] > 0 ? y + 1 : y - 1;
  };
  auto fast = compile(program, checked());
  (void)fast(at::ones({2}));
  EXPECT_THROW((void)fast(at::ones({2})), UserError);
  EXPECT_TRUE(same(total, at::full({2}, 2.0F)));
  EXPECT_TRUE(same(fast(at::ones({2})), at::full({2}, 3.0F)));
}

TEST_F(Checked, a_call_that_runs_again_keeps_what_it_replaces) {
  const c10::NoGradGuard no_grad;
  Tensor last;
  std::vector<Tensor> history;
  auto fast = compile(
      [&](const Tensor& x) {
        last = x * 2;
        history.push_back(x + 1);
        return at::full({}, last.const_data_ptr<float>()[0]);
      },
      checked());
  for (int call = 0; call < 6; ++call) {
    const Tensor x = at::randn({5});
    ASSERT_TRUE(same(fast(x), (x * 2)[0])) << call;
    ASSERT_TRUE(same(last, x * 2)) << call;
    for (const Tensor& kept : history) (void)kept.sum().item<float>();
    ASSERT_TRUE(same(history.back(), x + 1)) << call;
  }
}

TEST_F(Checked, a_call_that_runs_again_writes_once) {
  const c10::NoGradGuard no_grad;
  Tensor total = at::zeros({2}), kept;
  auto fast = compile(
      [&](const Tensor& x) {
        total.add_(x);
        kept = x * 2;
        return at::full({}, kept.const_data_ptr<float>()[0]);
      },
      checked());
  for (int call = 1; call <= 5; ++call) {
    EXPECT_TRUE(same(fast(at::ones({2})), at::full({}, 2.0F)));
    EXPECT_TRUE(same(total, at::ones({2}) * call)) << call;
  }
}

TEST_F(Checked, a_call_that_reads_what_it_has_kept_does_not_run_again) {
  const c10::NoGradGuard no_grad;
  Tensor state = at::ones({3});
  const auto program = [&](const Tensor& x) {
    state = state * 0.5 + x;
    return at::full({}, state.const_data_ptr<float>()[0]);
  };
  auto fast = compile(program, checked());
  const Tensor x = at::ones({3});
  EXPECT_TRUE(same(fast(x), at::full({}, 1.5F)));
  EXPECT_THROW((void)fast(x), UserError);
  EXPECT_TRUE(same(state, at::full({3}, 1.75F)));
  EXPECT_TRUE(same(fast(x), at::full({}, 1.875F)));
}

TEST_F(Checked, memory_asked_for_is_there) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x, Tensor& state) {
    const Tensor y = x * 2 + 1;
    const float first = *materialize(y).const_data_ptr<float>();  // a stand-in's
    state.mul_(y.sum() * 0.01);
    const float second = *materialize(state).const_data_ptr<float>();  // one that a segment writes
    const Tensor z = y + first + second;
    materialize(x).data_ptr<float>()[0] = 7;  // what y is made of has been read by now
    return z + x;
  };
  auto fast = compile(program, checked());
  Tensor ours = at::ones({4}), theirs = at::ones({4});
  for (int call = 0; call < 6; ++call) {
    const Tensor x = at::randn({4}), y = x.clone();
    ASSERT_TRUE(same(fast(x, ours), program(y, theirs))) << call;
    ASSERT_TRUE(same(ours, theirs)) << call;
    ASSERT_TRUE(same(x, y)) << call;
  }
  EXPECT_GE(fast.stats().replayed, 3) << fast.report();
  (void)materialize(Tensor());
}

TEST_F(Checked, numbers_that_the_host_puts_into_a_tensor_are_given_on_every_call) {
  const c10::NoGradGuard no_grad;
  float number = 0;
  const auto program = [&](const Tensor& x) {
    const Tensor factors = torch::tensor({number, 2.0F, 3.0F});
    return x * factors + torch::tensor({{number * 2}, {number}, {1.0F}});
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 6; ++call) {
    number += 1;
    const Tensor x = at::randn({3, 3});
    ASSERT_TRUE(same(fast(x), program(x))) << call;
  }
  EXPECT_EQ(fast.stats().replayed, 5) << fast.report();
}

TEST_F(Checked, a_few_elements_filled_between_their_readers) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x) {
    Tensor few = at::zeros({3});
    few.select(0, 1).fill_(2);
    const Tensor before = x + few;  // reads them
    few.select(0, 0).fill_(5);
    few.select(0, 2).fill_(before.sum());  // a stand-in's number
    return before * few;
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 6; ++call) {
    const Tensor x = at::randn({4, 3});
    ASSERT_TRUE(same(fast(x), program(x))) << call;
  }
}

/// In inference mode these stay whole, and may give a view of what they are given.
TEST_F(Checked, a_few_elements_filled_after_they_were_copied) {
  const c10::InferenceMode inference;
  const auto program = [](const Tensor& x, const Tensor& like) {
    const std::vector<Tensor> before{x.type_as(like), x.t().contiguous(), x.t().reshape({-1})};
    x.fill_(-1.25);
    return before;
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 5; ++call) {
    const Tensor x = at::randn({2, 3}).to(at::kHalf), like = at::zeros({1});
    const auto found = fast(x.clone(), like), wanted = program(x, like);
    for (size_t i = 0; i < wanted.size(); ++i) ASSERT_TRUE(same(found[i], wanted[i])) << call << ", result " << i;
  }
}

TEST_F(Checked, memory_that_a_pointer_lends_is_read_where_the_operator_stands) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x, float base) {
    std::vector<float> table(16, base);
    const Tensor mask = at::from_blob(table.data(), {16}, at::kFloat);
    const Tensor kept = at::from_blob(table.data(), {16}, at::kFloat).clone();
    const Tensor y = x * mask + kept;
    std::fill(table.begin(), table.end(), -1.0F);  // what an operator has read is the program's again
    return y.relu() + x;
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 8; ++call) {
    const Tensor x = at::rand({16});
    const auto base = static_cast<float>(call);
    ASSERT_TRUE(same(fast(x, base), program(x, base))) << call;
  }
}

TEST_F(Checked, lent_memory_of_an_argument_or_of_kept_weights_is_part_of_segments) {
  const c10::NoGradGuard no_grad;
  std::vector<float> weights(16, 0.5F), frame(16);
  const Tensor weight = at::from_blob(weights.data(), {16}, at::kFloat);
  const auto program = [&](const Tensor& x) { return (x * weight + 1).relu() * 2; };
  auto fast = compile(program, checked());
  for (int call = 0; call < 8; ++call) {
    std::fill(frame.begin(), frame.end(), 0.25F * static_cast<float>(call));
    weights[3] = static_cast<float>(call);
    const Tensor x = at::from_blob(frame.data(), {16}, at::kFloat);
    ASSERT_TRUE(same(fast(x), program(x))) << call;
  }
  EXPECT_GE(fast.stats().replayed, 5) << fast.report();
  EXPECT_EQ(fast.report().entries.back().breaks.size(), 0U) << fast.report();
}

}  // namespace
}  // namespace sinter::test
