#include <ATen/CPUGeneratorImpl.h>
#include <sinter/control.h>
#include <torch/nn/modules/transformerlayer.h>
#include <torch/nn/options/transformerlayer.h>

#include <functional>
#include <thread>

#include "where.h"

namespace sinter::test {
namespace {

using at::Tensor;

class HostReads : public OnDevice {
 protected:
  [[nodiscard]] Tensor full(int64_t size, double value) const {
    return at::full({size}, value, at::TensorOptions(GetParam().device).dtype(at::kFloat));
  }
  [[nodiscard]] Tensor random(at::IntArrayRef sizes) {
    return at::randn(sizes, generator_, at::kFloat).to(GetParam().device);
  }
  [[nodiscard]] Options options() const { return unlimited({.mode = GetParam().mode, .strict = true}); }

 private:
  c10::NoGradGuard no_grad_;
  at::Generator generator_ = at::make_generator<at::CPUGeneratorImpl>(11);
};

INSTANTIATE_TEST_SUITE_P(Cpu, HostReads, ::testing::Values(Where{"default", at::kCPU, Mode::Default}), name_of);
INSTANTIATE_TEST_SUITE_P(Gpu, HostReads,
                         ::testing::Values(Where{"default", at::kCUDA, Mode::Default},
                                           Where{"reduce_overhead", at::kCUDA, Mode::ReduceOverhead}),
                         name_of);

bool has_positive_sum(const Tensor& x) { return (x.sum() > 0).item<bool>(); }

TEST_P(HostReads, a_branch_on_a_bool_has_two_courses) {
  const auto program = [](const Tensor& x) { return has_positive_sum(x) ? x * 2 + 1 : x * 3 - 1; };
  auto fast = compile(program, options());
  for (int call = 0; call < 12; ++call) {
    const Tensor x = full(5, call % 3 == 0 ? -1.0 : 2.0 + call);
    ASSERT_TRUE(same(fast(x), program(x))) << "call " << call << "\n" << fast.report();
  }
  const Report report = fast.report();
  EXPECT_TRUE(unbroken(report));
  EXPECT_EQ(report.entries.size(), 3U) << "what lies before the read, and both courses\n" << report;
  EXPECT_GE(fast.stats().replayed, 8) << report;
}

TEST_P(HostReads, a_number_chooses_its_course_by_value) {
  const auto program = [](const Tensor& x) {
    const auto largest = x.max().item<float>();
    return largest > 1.5 ? x + 1 : largest > 0.5 ? x - 1 : x * 2;
  };
  auto fast = compile(program, options());
  for (int call = 0; call < 12; ++call) {
    const Tensor x = full(5, call % 3);
    ASSERT_TRUE(same(fast(x), program(x))) << "call " << call;
  }
  EXPECT_GE(fast.stats().replayed, 6) << fast.report();
}

TEST_P(HostReads, a_loop_runs_until_a_condition_on_the_device) {
  const auto program = [](Tensor x) {
    while ((x.abs().max() > 0.1).item<bool>()) x = x * 0.5;
    return x + 1;
  };
  auto fast = compile(program, options());
  for (int call = 0; call < 20; ++call) {
    const Tensor x = full(5, 1 << (call % 4));
    ASSERT_TRUE(same(fast(x), program(x))) << "call " << call << "\n" << fast.report();
  }
  const Report report = fast.report();
  EXPECT_TRUE(unbroken(report));
  EXPECT_GE(fast.stats().replayed, 15) << report;
}

TEST_P(HostReads, branches_lie_inside_branches) {
  const auto program = [](const Tensor& x, const Tensor& y) {
    if (!has_positive_sum(x)) return x - y;
    const Tensor z = x * y;
    return has_positive_sum(y) ? z * 2 : has_positive_sum(z) ? z * 3 : z * 4;
  };
  auto fast = compile(program, options());
  for (int call = 0; call < 40; ++call) {
    const Tensor x = random({7});
    const Tensor y = random({7});
    ASSERT_TRUE(same(fast(x, y), program(x, y))) << "call " << call << "\n" << fast.report();
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 25) << fast.report();
}

TEST_P(HostReads, what_an_earlier_segment_made_is_returned_too) {
  const auto program = [](const Tensor& x) {
    const Tensor y = x * 2;
    const Tensor part = y.slice(0, 1, 3);
    return has_positive_sum(y) ? std::vector<Tensor>{y, part, x, x.slice(0, 1), part + 1}
                               : std::vector<Tensor>{part, part};
  };
  auto fast = compile(program, options());
  for (int call = 0; call < 9; ++call) {
    const Tensor x = full(5, call % 2 == 0 ? -1.0 : 2.0);
    const auto found = fast(x);
    const auto expected = program(x);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_TRUE(same(found[i], expected[i])) << "call " << call << " result " << i;
      ASSERT_EQ(found[i].is_alias_of(x), expected[i].is_alias_of(x)) << i;
      ASSERT_EQ(found[i].is_alias_of(found[0]), expected[i].is_alias_of(expected[0])) << i;
    }
  }
  EXPECT_GE(fast.stats().replayed, 3) << fast.report();
}

TEST_P(HostReads, a_write_before_a_read_is_seen_by_it_and_done_once) {
  const auto program = [](Tensor& x) {
    x.add_(1);
    const Tensor seen = x.clone();
    if (has_positive_sum(x)) x.mul_(2);
    return seen + x;
  };
  auto fast = compile(program, options());
  Tensor eager = full(4, -6);
  Tensor compiled = eager.clone();
  for (int call = 0; call < 14; ++call) {
    const Tensor expected = program(eager);
    ASSERT_TRUE(same(fast(compiled), expected)) << "call " << call << "\n" << fast.report();
    ASSERT_TRUE(same(compiled, eager)) << "call " << call;
    if (call % 5 == 4) {
      eager.fill_(-3);
      compiled.fill_(-3);
    }
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 4) << fast.report();
}

TEST_P(HostReads, a_call_that_leaves_its_course_writes_once) {
  const auto program = [](Tensor& x, const Tensor& flag) {
    x.add_(1);
    if (has_positive_sum(x)) x.mul_(2);
    if (has_positive_sum(flag)) x.sub_(3);
    return x * 1.5;
  };
  auto fast = compile(program, options());
  Tensor eager = full(4, 1);
  Tensor compiled = eager.clone();
  for (const double flag : {1, 1, 1, -1, 1, -1, -1, 1}) {
    const Tensor x = full(2, flag);
    ASSERT_TRUE(same(fast(compiled, x), program(eager, x))) << fast.report();
    ASSERT_TRUE(same(compiled, eager));
  }
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_P(HostReads, random_numbers_before_a_read_are_drawn_once) {
  const auto program = [](const Tensor& x) {
    const Tensor noise = at::rand_like(x);
    const Tensor y = x + noise;
    return has_positive_sum(x) ? y * 2 + at::rand_like(x) : y * 3;
  };
  auto fast = compile(program, options());
  const std::vector<double> values{1, 1, 1, -1, 1, -1, -1, 1, -1};
  std::vector<Tensor> expected;
  at::manual_seed(5);
  for (const double value : values) expected.push_back(program(full(4, value)));
  const Tensor after = at::rand({3});
  at::manual_seed(5);
  for (size_t call = 0; call < values.size(); ++call) {
    ASSERT_TRUE(same(fast(full(4, values[call])), expected[call])) << "call " << call << "\n" << fast.report();
  }
  EXPECT_TRUE(at::equal(at::rand({3}), after)) << "the generator stands where eager leaves it";
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 2) << fast.report();
}

TEST_P(HostReads, sizes_that_depend_on_data_choose_the_course) {
  const auto program = [](const Tensor& x) {
    const Tensor chosen = x.masked_select(x > 0) * 2;
    return std::vector<Tensor>{chosen + 1, x.nonzero(), x.index({x > 1}).sum()};
  };
  auto fast = compile(program, options());
  for (int call = 0; call < 12; ++call) {
    Tensor x = full(6, 2);
    x[call % 3] = -1;
    if (call % 2 == 0) x[4] = 0;
    const auto expected = program(x);
    const auto found = fast(x);
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_TRUE(same(found[i], expected[i])) << "call " << call << " result " << i << "\n" << fast.report();
    }
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 4);
}

/// An index out of range is a device assertion on a GPU.
class CpuHostReads : public HostReads {};

INSTANTIATE_TEST_SUITE_P(Cpu, CpuHostReads, ::testing::Values(Where{"default", at::kCPU, Mode::Default}), name_of);

TEST_P(CpuHostReads, exceptions_after_a_read_leave_behind_what_eager_leaves) {
  const auto program = [](Tensor& x, const Tensor& index) {
    x.add_(1);
    if (has_positive_sum(x)) return x.index_select(0, index) * 2;
    return x - 1;
  };
  auto fast = compile(program, unlimited({.mode = GetParam().mode}));
  Tensor eager = full(4, 1);
  Tensor compiled = eager.clone();
  const Tensor good = at::tensor({0, 2});
  const Tensor bad = at::tensor({0, 9});
  for (const Tensor& index : {good, good, good, bad, good, good, bad, good}) {
    if (index.is_same(bad)) {
      EXPECT_THROW(program(eager, index), c10::Error);
      EXPECT_THROW(fast(compiled, index), c10::Error);
    } else {
      ASSERT_TRUE(same(fast(compiled, index), program(eager, index)));
    }
    ASSERT_TRUE(same(compiled, eager));
  }
  EXPECT_GT(fast.stats().replayed, 0) << fast.report();
}

TEST_P(HostReads, state_read_and_written_by_every_call) {
  struct Counter {
    Tensor seen;
    Tensor operator()(const Tensor& x) const {
      seen.add_(x);
      return has_positive_sum(seen) ? x + seen : x - seen;
    }
  };
  const Counter eager{full(3, -2)};
  const Counter held{full(3, -2)};
  auto fast = compile([&held](const Tensor& x) { return held(x); }, options());
  for (int call = 0; call < 12; ++call) {
    const Tensor x = full(3, call % 4 == 3 ? -2.0 : 0.75);
    ASSERT_TRUE(same(fast(x), eager(x))) << "call " << call << "\n" << fast.report();
    ASSERT_TRUE(same(held.seen, eager.seen));
  }
  EXPECT_GE(fast.stats().replayed, 3) << fast.report();
}

TEST_P(HostReads, a_course_whose_state_was_replaced_follows_it) {
  std::vector<Tensor> weights{full(3, 1), full(3, 2)};
  const auto program = [&weights](const Tensor& x) { return has_positive_sum(x) ? x * weights[0] : x * weights[1]; };
  auto fast = compile(program, options());
  for (int call = 0; call < 24; ++call) {
    if (call == 8) weights[1] = full(3, 5);
    if (call == 16) weights[0] = full(3, 7);
    const Tensor x = full(3, call % 2 == 0 ? 1.0 : -1.0);
    ASSERT_TRUE(same(fast(x), program(x))) << "call " << call << "\n" << fast.report();
  }
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_P(HostReads, threads_follow_courses_at_once) {
  const auto program = [](const Tensor& x) { return has_positive_sum(x) ? x * 2 : x * 3; };
  auto fast = compile(program, options());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      const c10::NoGradGuard no_grad;
      for (int call = 0; call < 30; ++call) {
        const Tensor x = full(64, (call + thread) % 3 == 0 ? -1.0 : 1.0 + call);
        if (!same(fast(x), program(x))) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(HostReads, equal_is_a_read_of_a_bool) {
  const auto program = [](const Tensor& x, const Tensor& y) { return at::equal(x, y) ? x * 2 : x + y; };
  auto fast = compile(program, options());
  for (int call = 0; call < 10; ++call) {
    const Tensor x = full(3, call);
    const Tensor y = full(3, call % 2 == 0 ? call : -1);
    ASSERT_TRUE(same(fast(x, y), program(x, y))) << "call " << call;
  }
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_P(HostReads, a_transformer_layer_replays) {
  torch::nn::TransformerEncoderLayer layer(torch::nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16));
  layer->eval();
  layer->to(GetParam().device);
  auto fast = compile(layer, options());
  for (int call = 0; call < 6; ++call) {
    const Tensor x = random({5, 3, 8});
    ASSERT_TRUE(same(fast(x), layer->forward(x))) << "call " << call << "\n" << fast.report();
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 3) << fast.report();
}

TEST_P(HostReads, cond_and_while_loop_do_what_they_say) {
  const auto program = [](const Tensor& x) {
    const Tensor halved =
        while_loop([](const Tensor& v) { return v.abs().max() > 1; }, [](const Tensor& v) { return v / 2; }, x);
    const auto [sum, last] = while_loop([](const Tensor& s, const Tensor&) { return s.max() < 3; },
                                        [](const Tensor& s, const Tensor& v) { return std::make_tuple(s + v, v + 1); },
                                        std::make_tuple(halved, halved.abs()));
    return cond(
        x.sum() > 0, [](const Tensor& a, const Tensor& b) { return a + b; },
        [](const Tensor& a, const Tensor& b) { return a - b; }, sum, last);
  };
  auto fast = compile(program, options());
  for (int call = 0; call < 16; ++call) {
    const Tensor x = full(4, call % 2 == 0 ? 4.0 : -3.0);
    ASSERT_TRUE(same(fast(x), program(x))) << "call " << call << "\n" << fast.report();
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 6) << fast.report();
}

TEST_P(HostReads, a_number_that_is_handed_on_is_given_on_every_call) {
  const auto program = [](const Tensor& x) {
    const auto largest = x.max().item<double>();
    return std::make_pair(x / largest, largest);
  };
  auto fast = compile(program, options());
  for (const double value : {1.0, 2.0, 1.5, 1.25, 1.75, 1.125, 2.0, 1.0}) {
    const auto [expected, expected_largest] = program(full(5, value));
    const auto [found, largest] = fast(full(5, value));
    ASSERT_TRUE(same(found, expected)) << value << fast.report();
    ASSERT_EQ(largest, expected_largest);
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 4) << fast.report();
}

TEST_P(HostReads, a_number_chooses_what_it_is_used_for) {
  const auto program = [](const Tensor& x) {
    const auto largest = x.max().item<double>();
    return largest > 3 && largest < 4 ? x * largest + 100 : x * largest;
  };
  auto fast = compile(program, options());
  for (const double value : {1.0, 2.0, 1.5, 9.0, 3.5, 3.75, -1.0, 1.75, 100.0, 3.5, 3.5}) {
    ASSERT_TRUE(same(fast(full(5, value)), program(full(5, value)))) << value << fast.report();
  }
  EXPECT_TRUE(unbroken(fast.report()));
}

}  // namespace
}  // namespace sinter::test
