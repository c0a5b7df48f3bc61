#include <ATen/ops/full.h>
#include <ATen/ops/pow.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "api_test.h"

/// Callables whose host code counts, logs, prints, draws numbers, decides and throws: it does so once in every call, in
/// its order, and sees the data of its call.
namespace sinter::test {
namespace {

using at::Tensor;

Tensor full(int64_t size, double value) { return at::full({size}, value, at::kFloat); }

using HostCode = Api;

TEST_F(HostCode, runs_once_in_every_call) {
  int steps = 0;
  auto fast = compile(
      [&](const Tensor& x) {
        ++steps;
        return x * 2 + 1;
      },
      unlimited({.strict = true}));
  for (int call = 1; call <= 20; ++call) {
    ASSERT_TRUE(same(fast(full(3, call)), full(3, call) * 2 + 1)) << call;
    ASSERT_EQ(steps, call) << fast.report();
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_EQ(fast.stats().replayed, 19) << fast.report();
}

TEST_F(HostCode, sees_the_tensors_of_its_call) {
  std::vector<float> seen, expected;
  auto fast = compile(
      [&](const Tensor& x) {
        const Tensor y = x * 3;
        const Tensor loss = (y - 1).sum();
        seen.push_back(loss.item<float>() + y[0].item<float>());
        return y + loss;
      },
      unlimited({.strict = true}));
  for (int call = 0; call < 20; ++call) {
    const Tensor x = full(4, call);
    const Tensor loss = (x * 3 - 1).sum();
    expected.push_back(loss.item<float>() + 3.F * static_cast<float>(call));
    ASSERT_TRUE(same(fast(x), x * 3 + loss)) << call;
    ASSERT_EQ(seen, expected) << call;
  }
  EXPECT_GE(fast.stats().replayed, 15) << fast.report();
}

/// Calls a program eager and compiled, each with a state of its own in the variable that it captures: results and
/// states agree, nothing breaks, and most calls replay.
template <class Program, class State>
void agrees(const Program& program, State& live, const std::function<Tensor(int)>& input) {
  auto fast = compile(program, unlimited({.strict = true}));
  State compiled{}, eager{};
  for (int call = 0; call < 40; ++call) {
    const Tensor x = input(call);
    live = compiled;
    const Tensor found = fast(x);
    compiled = live;
    live = eager;
    ASSERT_TRUE(same(found, program(x))) << call << "\n" << fast.report();
    eager = live;
    ASSERT_EQ(compiled, eager) << call;
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 15) << fast.report();
}

TEST_F(HostCode, keeps_its_order_among_reads) {
  std::string log;
  const auto program = [&](const Tensor& x) {
    log += 'a';
    const bool positive = (x.sum() > 0).item<bool>();
    log += positive ? 'p' : 'n';
    Tensor y = positive ? x + 1 : x - 1;
    if (log.size() % 3 == 0) {
      log += std::to_string(static_cast<int>(y[0].item<float>()));
      y = y * 2;
    }
    log += '.';
    return y;
  };
  agrees(program, log, [](int call) { return full(4, call % 3 == 0 ? -call - 1 : call); });
}

TEST_F(HostCode, chooses_the_course_by_what_it_keeps) {
  int steps = 0;
  const auto program = [&](const Tensor& x) {
    const int64_t phase = steps++ % 3;
    if (phase == 0) return x + 1;
    return steps > 5 ? x * phase : x - phase;
  };
  agrees(program, steps, [](int call) { return full(4, call); });
}

TEST_F(HostCode, gives_numbers_that_rest_change_their_sign_and_are_none) {
  const double nan = std::nan("");
  const std::vector<double> schedule{1, 0.5, 0.5, 0.5, -2, 0, 0, 1e30, nan, 0.5, HUGE_VAL, 0.25, 0.25, 0.25, 0.25, 3};
  size_t step = 0;
  auto fast = compile(
      [&](const Tensor& x) {
        const double first = schedule[step];
        const double second = schedule[(2 * step++) % schedule.size()];
        return x * first + second;
      },
      unlimited({.strict = true}));
  for (size_t call = 0; call < schedule.size(); ++call) {
    const Tensor expected = full(3, 2) * schedule[call] + schedule[(2 * call) % schedule.size()];
    ASSERT_TRUE(same(fast(full(3, 2)), expected)) << call << fast.report();
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 8) << fast.report();
}

TEST_F(HostCode, gives_another_number_in_every_call) {
  int steps = 0;
  auto fast = compile([&](const Tensor& x) { return x * std::pow(0.5, ++steps) - 1; }, unlimited({.strict = true}));
  for (int call = 1; call <= 30; ++call) {
    ASSERT_TRUE(same(fast(full(3, 1 << 20)), full(3, 1 << 20) * std::pow(0.5, call) - 1)) << call << fast.report();
    ASSERT_EQ(steps, call);
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 25) << fast.report();
}

TEST_F(HostCode, branches_on_a_number_that_it_gives) {
  double rate = 1;
  const auto program = [&](const Tensor& x) { return rate < 0.7 ? x - rate : x * rate; };
  auto fast = compile(program, unlimited({.strict = true}));
  for (int call = 0; call < 30; ++call) {
    rate = 1 - 0.03 * (call % 15);
    ASSERT_TRUE(same(fast(full(3, 2)), program(full(3, 2)))) << call << fast.report();
  }
  EXPECT_GE(fast.stats().replayed, 20) << fast.report();
}

TEST_F(HostCode, draws_its_random_numbers_where_they_stood) {
  std::mt19937 random(3), expected(3);
  auto fast =
      compile([&](const Tensor& x) { return x + static_cast<double>(random() % 1000); }, unlimited({.strict = true}));
  for (int call = 0; call < 20; ++call) {
    ASSERT_TRUE(same(fast(full(3, 2)), full(3, 2) + static_cast<double>(expected() % 1000))) << call;
  }
  EXPECT_GE(fast.stats().replayed, 15) << fast.report();
}

TEST_F(HostCode, runs_once_where_every_call_does_what_none_did) {
  int before = 0, between = 0;
  auto fast = compile(
      [&](const Tensor& x) {
        ++before;
        const auto number = x.max().item<float>();
        between += x.numel() > 0 ? 1 : 2;
        return at::pow(x, number);
      },
      unlimited());
  for (int call = 1; call <= 24; ++call) {
    ASSERT_TRUE(same(fast(full(3, call)), at::pow(full(3, call), call))) << call;
    ASSERT_EQ(before, call);
    ASSERT_EQ(between, call);
  }
}

TEST_F(HostCode, throws_after_the_writes_that_stood_before) {
  int calls = 0;
  const auto program = [&](Tensor& x) {
    x.add_(1);
    ++calls;
    if (x[0].item<float>() > 5) throw std::out_of_range("above five");
    x.mul_(2);
    return x + 1;
  };
  auto fast = compile(program, unlimited({.strict = true}));
  Tensor compiled = full(3, 0), eager = full(3, 0);
  for (int call = 0; call < 24; ++call) {
    compiled.fill_(call % 7);
    eager.fill_(call % 7);
    calls = 0;
    if (call % 7 >= 5) {
      EXPECT_THROW(fast(compiled), std::out_of_range) << call;
      EXPECT_EQ(calls, 1);
      EXPECT_THROW(program(eager), std::out_of_range);
    } else {
      ASSERT_TRUE(same(fast(compiled), program(eager))) << call;
      EXPECT_EQ(calls, 2);
    }
    ASSERT_TRUE(same(compiled, eager)) << call;
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 10) << fast.report();
}

TEST_F(HostCode, catches_what_it_throws_itself) {
  for (const int first : {0, 1}) {  // thrown in the first call, or later
    int steps = first;
    auto fast = compile(
        [&](const Tensor& x) {
          try {
            if (++steps % 3 == 1) throw steps;
          } catch (int step) {
            return x * step;
          }
          return x + 1;
        },
        unlimited());
    for (int call = 1; call <= 12; ++call) {
      const int step = call + first;
      ASSERT_TRUE(same(fast(full(3, 2)), step % 3 == 1 ? full(3, 2) * step : full(3, 2) + 1)) << call;
      ASSERT_EQ(steps, step);
    }
    EXPECT_TRUE(unbroken(fast.report()));
    EXPECT_GE(fast.stats().replayed, 6) << fast.report();
  }
}

TEST_F(HostCode, of_compiled_functions_in_each_other_runs_once) {
  int inner_steps = 0, outer_steps = 0;
  auto inner = compile(
      [&](const Tensor& x) {
        ++inner_steps;
        return (x.sum() > 2).item<bool>() ? x + 1 : x - 1;
      },
      unlimited());
  const auto program = [&](const Tensor& x) {
    ++outer_steps;
    const Tensor y = inner(x);
    return at::pow(y, y.max().item<float>());
  };
  auto fast = compile(program, unlimited());
  for (int call = 1; call <= 20; ++call) {
    inner_steps = outer_steps = 0;
    const Tensor x = full(3, call % 6 - 2);
    const Tensor found = fast(x);
    ASSERT_EQ(inner_steps, 1) << call;
    ASSERT_EQ(outer_steps, 1) << call;
    const Tensor y = x.sum().item<float>() > 2 ? x + 1 : x - 1;
    ASSERT_TRUE(same(found, at::pow(y, y.max().item<float>()))) << call;
  }
}

TEST_F(HostCode, finds_grad_mode_as_it_is_where_it_stands) {
  int with = 0, without = 0;
  auto fast = compile(
      [&](const Tensor& x) {
        const at::AutoGradMode on(true);
        ++(at::GradMode::is_enabled() ? with : without);
        const c10::NoGradGuard off;
        ++(at::GradMode::is_enabled() ? with : without);
        return x + 1;
      },
      unlimited());
  for (int call = 1; call <= 10; ++call) {
    fast(full(2, 1));
    ASSERT_EQ(with, call);
    ASSERT_EQ(without, call);
  }
  EXPECT_EQ(fast.stats().replayed, 9) << fast.report();
}

TEST_F(HostCode, writes_tensors_of_its_own_and_keeps_clones) {
  Tensor sum = full(2, 0);
  std::vector<Tensor> kept;
  auto fast = compile(
      [&](const Tensor& x) {
        const Tensor y = x * 2;
        sum.add_(y);
        kept.push_back(y.clone());
        return y + 1;
      },
      unlimited({.strict = true}));
  for (int call = 1; call <= 10; ++call) {
    fast(full(2, call));
    ASSERT_TRUE(same(sum, full(2, call * (call + 1)))) << call;
    for (int earlier = 1; earlier <= call; ++earlier) {
      ASSERT_TRUE(same(kept[static_cast<size_t>(earlier) - 1], full(2, 2 * earlier))) << call;
    }
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_EQ(fast.stats().replayed, 9) << fast.report();
}

TEST_F(HostCode, writes_what_the_program_reads_before_and_after) {
  Tensor mean = full(2, 0);
  const auto program = [](Tensor& average, const Tensor& x) {
    const Tensor before = average + x;
    average.mul_(0.5).add_(x);
    Tensor y = x * 2;
    y.add_(1);
    return before + average + y;
  };
  auto fast = compile([&](const Tensor& x) { return program(mean, x); }, unlimited());
  Tensor expected = full(2, 0);
  for (int call = 1; call <= 6; ++call) {
    ASSERT_TRUE(same(fast(full(2, call)), program(expected, full(2, call)))) << call;
    ASSERT_TRUE(same(mean, expected)) << call;
  }
  EXPECT_EQ(fast.stats().replayed, 5) << fast.report();
}

TEST_F(HostCode, prints_in_every_call) {
  std::ostringstream called, expected;
  auto fast = compile(
      [&](const Tensor& x) {
        const Tensor y = x * 2;
        called << y << '\n';
        return y + 1;
      },
      unlimited({.strict = true}));
  for (int call = 1; call <= 8; ++call) {
    fast(full(2, call));
    expected << full(2, call) * 2 << '\n';
  }
  EXPECT_EQ(called.str(), expected.str());
  EXPECT_EQ(fast.stats().replayed, 7) << fast.report();
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_F(HostCode, prints_after_a_write) {
  const auto total = full(2, 0);
  std::ostringstream called, expected;
  auto fast = compile(
      [&](const Tensor& x) {
        total.add_(x);
        called << total.sum().item<float>() << x * 2 << '\n';
        return x + 1;
      },
      unlimited({.strict = true}));
  for (int call = 1; call <= 8; ++call) {
    EXPECT_TRUE(same(fast(full(2, call)), full(2, call + 1)));
    expected << call * (call + 1) << full(2, call) * 2 << '\n';
  }
  EXPECT_EQ(called.str(), expected.str());
}

TEST_F(HostCode, is_taken_by_fullgraph) {
  int steps = 0;
  auto fast = compile([&](const Tensor& x) { return ++steps % 2 == 0 ? x + 1 : x - 1; },
                      unlimited({.fullgraph = true, .strict = true}));
  for (int call = 1; call <= 8; ++call) {
    ASSERT_TRUE(same(fast(full(2, 1)), call % 2 == 0 ? full(2, 2) : full(2, 0))) << call;
  }
}

TEST_F(HostCode, of_two_threads_runs_once_a_call) {
  std::atomic<int64_t> steps = 0, total = 0;
  auto fast = compile(
      [&](const Tensor& x) {
        ++steps;
        const bool large = (x.sum() > 10).item<bool>();
        total += x[0].item<int64_t>();
        return large ? x + 1 : x - 1;
      },
      unlimited());
  const auto work = [&](int64_t thread) {
    const c10::NoGradGuard no_grad;
    for (int64_t call = 0; call < 100; ++call) {
      const Tensor x = full(2, static_cast<double>(thread + call % 7));
      const Tensor expected = x.sum().item<float>() > 10 ? x + 1 : x - 1;
      EXPECT_TRUE(same(fast(x), expected));
    }
  };
  std::thread other([&] { work(4); });
  work(1);
  other.join();
  int64_t expected = 0;
  for (int64_t call = 0; call < 100; ++call) expected += 1 + 4 + 2 * (call % 7);
  EXPECT_EQ(steps, 200);
  EXPECT_EQ(total, expected);
}

}  // namespace
}  // namespace sinter::test
