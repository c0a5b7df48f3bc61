#include <atomic>
#include <cmath>
#include <functional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "api_test.h"

namespace sinter::test {
namespace {

using at::Tensor;

Tensor full(int64_t size, double value) { return at::full({size}, value, at::kFloat); }

class Host : public Api {};

TEST_F(Host, an_effect_outside_of_a_compiled_callable_just_runs) {
  int steps = 0;
  host([&] { ++steps; });
  EXPECT_EQ(host([&] { return steps + 1; }), 2);
  EXPECT_EQ(host([](const Tensor& x) { return x.sum().item<double>(); }, full(3, 2)), 6.0);
}

TEST_F(Host, an_effect_runs_once_on_every_call) {
  int steps = 0;
  auto fast = compile(
      [&](const Tensor& x) {
        host([&] { ++steps; });
        return x * 2 + 1;
      },
      trusted({.strict = true}));
  for (int call = 1; call <= 20; ++call) {
    ASSERT_TRUE(same(fast(full(3, call)), full(3, call) * 2 + 1)) << call;
    ASSERT_EQ(steps, call) << fast.report();
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(replays(fast.report()), 15) << fast.report();
  EXPECT_NE(fast.report().text().find("host      1 call a call"), std::string::npos) << fast.report();
}

TEST_F(Host, an_effect_sees_the_tensors_of_its_call) {
  std::vector<float> seen, expected;
  auto fast = compile(
      [&](const Tensor& x) {
        const Tensor y = x * 3;
        const Tensor loss = (y - 1).sum();
        host([&](const Tensor& a, const Tensor& b) { seen.push_back(a.item<float>() + b[0].item<float>()); }, loss, y);
        return y + loss;
      },
      trusted({.strict = true}));
  for (int call = 0; call < 20; ++call) {
    const Tensor x = full(4, call);
    const Tensor loss = (x * 3 - 1).sum();
    expected.push_back(loss.item<float>() + 3.F * static_cast<float>(call));
    ASSERT_TRUE(same(fast(x), x * 3 + loss)) << call;
    ASSERT_EQ(seen, expected) << call;
  }
  EXPECT_GE(replays(fast.report()), 15) << fast.report();
}

/// Calls a program eager and compiled, each with a state of its own in the variable that it captures: results and
/// states agree, nothing breaks, and most calls replay.
template <class Program, class State>
void agrees(const Program& program, State& live, const std::function<Tensor(int)>& input) {
  auto fast = compile(program, trusted({.strict = true}));
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
  EXPECT_GE(replays(fast.report()), 15) << fast.report();
}

TEST_F(Host, effects_keep_their_order_among_each_other_and_among_reads) {
  std::string log;
  const auto program = [&](const Tensor& x) {
    host([&] { log += 'a'; });
    const bool positive = (x.sum() > 0).item<bool>();
    host([&, positive] { log += positive ? 'p' : 'n'; });
    Tensor y = positive ? x + 1 : x - 1;
    if (host([&] { return log.size() % 3 == 0; })) {
      host([&](const Tensor& t) { log += std::to_string(static_cast<int>(t[0].item<float>())); }, y);
      y = y * 2;
    }
    host([&] { log += '.'; });
    return y;
  };
  agrees(program, log, [](int call) { return full(4, call % 3 == 0 ? -call - 1 : call); });
}

TEST_F(Host, a_bool_and_an_integer_choose_the_course) {
  int steps = 0;
  const auto program = [&](const Tensor& x) {
    const int64_t phase = host([&] { return int64_t{steps++ % 3}; });
    if (phase == 0) return x + 1;
    return host([&] { return steps > 5; }) ? x * phase : x - phase;
  };
  agrees(program, steps, [](int call) { return full(4, call); });
}

TEST_F(Host, a_scalar_that_is_another_one_on_every_call_needs_no_recording) {
  int steps = 0;
  auto fast = compile(
      [&](const Tensor& x) {
        const at::Scalar rate = host([&] { return at::Scalar(std::pow(0.5, ++steps)); });
        return x * rate - 1;
      },
      trusted({.strict = true}));
  for (int call = 1; call <= 30; ++call) {
    ASSERT_TRUE(same(fast(full(3, 1 << 20)), full(3, 1 << 20) * std::pow(0.5, call) - 1)) << call << fast.report();
    ASSERT_EQ(steps, call);
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_EQ(fast.report().entries[0].paths.size(), 1U) << fast.report();
  EXPECT_GE(replays(fast.report()), 25) << fast.report();
}

TEST_F(Host, scalars_may_rest_change_their_sign_and_be_no_number) {
  const double nan = std::nan("");
  const std::vector<double> schedule{1, 0.5, 0.5, 0.5, -2, 0, 0, 1e30, nan, 0.5, HUGE_VAL, 0.25, 0.25, 0.25, 0.25, 3};
  size_t step = 0;
  auto fast = compile(
      [&](const Tensor& x) {
        const at::Scalar first = host([&] { return at::Scalar(schedule[step]); });
        const at::Scalar second = host([&] { return at::Scalar(schedule[(2 * step++) % schedule.size()]); });
        return x * first + second;
      },
      trusted({.strict = true}));
  for (size_t call = 0; call < schedule.size(); ++call) {
    const Tensor expected = full(3, 2) * schedule[call] + schedule[(2 * call) % schedule.size()];
    ASSERT_TRUE(same(fast(full(3, 2)), expected)) << call << fast.report();
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(replays(fast.report()), 8) << fast.report();
}

TEST_F(Host, a_float_chooses_where_no_recording_showed_otherwise) {
  double rate = 1;
  const auto program = [&](const Tensor& x) {
    const double factor = host([&] { return rate; });
    return factor < 0.7 ? x - factor : x * factor;
  };
  auto fast = compile(program, trusted({.strict = true}));
  for (int call = 0; call < 30; ++call) {
    rate = 1 - 0.03 * (call % 15);
    ASSERT_TRUE(same(fast(full(3, 2)), program(full(3, 2)))) << call << fast.report();
  }
  EXPECT_GE(replays(fast.report()), 4) << fast.report();
}

TEST_F(Host, random_numbers_of_the_host_go_on_where_they_stood) {
  std::mt19937 random(3), expected(3);
  auto fast = compile(
      [&](const Tensor& x) { return x + host([&] { return at::Scalar(static_cast<double>(random() % 1000)); }); },
      trusted({.strict = true}));
  for (int call = 0; call < 20; ++call) {
    ASSERT_TRUE(same(fast(full(3, 2)), full(3, 2) + static_cast<double>(expected() % 1000))) << call;
  }
  EXPECT_GE(replays(fast.report()), 15) << fast.report();
}

TEST_F(Host, what_ran_before_a_call_left_the_tree_does_not_run_again) {
  int before = 0, between = 0;
  auto fast = compile(
      [&](const Tensor& x) {
        host([&] { ++before; });
        const auto number = x.max().item<float>();
        host([&](const Tensor& t) { between += t.numel() > 0 ? 1 : 2; }, x);
        return at::pow(x, number);
      },
      trusted());
  for (int call = 1; call <= 24; ++call) {  // more numbers than courses: the last calls run as eager runs them
    ASSERT_TRUE(same(fast(full(3, call)), at::pow(full(3, call), call))) << call;
    ASSERT_EQ(before, call);
    ASSERT_EQ(between, call);
  }
}

TEST_F(Host, an_exception_comes_after_the_writes_that_stood_before_it) {
  int calls = 0;
  const auto program = [&](Tensor& x) {
    x.add_(1);
    host(
        [&](const Tensor& t) {
          ++calls;
          if (t[0].item<float>() > 5) throw std::out_of_range("above five");
        },
        x);
    x.mul_(2);
    return x + 1;
  };
  auto fast = compile(program, trusted({.strict = true}));
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
  EXPECT_GE(replays(fast.report()), 10) << fast.report();
}

TEST_F(Host, a_callable_that_catches_what_the_host_throws_does_what_eager_does) {
  int steps = 0;
  const auto program = [&](const Tensor& x) {
    try {
      host([&] {
        if (++steps % 3 == 0) throw steps;
      });
    } catch (int step) {
      return x * step;
    }
    return x + 1;
  };
  auto fast = compile(program, trusted());
  for (int call = 1; call <= 12; ++call) {
    ASSERT_TRUE(same(fast(full(3, 2)), call % 3 == 0 ? full(3, 2) * call : full(3, 2) + 1)) << call;
    ASSERT_EQ(steps, call);
  }
  EXPECT_TRUE(unbroken(fast.report())) << "calls that throw are eager's own";
  EXPECT_GE(replays(fast.report()), 4) << fast.report();
}

TEST_F(Host, a_recording_in_which_the_host_threw_is_a_break) {
  int steps = 0;
  auto fast = compile(
      [&](const Tensor& x) {
        try {
          host([&] {
            if (++steps % 3 == 1) throw steps;
          });
        } catch (int step) {
          return x * step;
        }
        return x + 1;
      },
      trusted());
  for (int call = 1; call <= 6; ++call) {
    ASSERT_TRUE(same(fast(full(3, 2)), call % 3 == 1 ? full(3, 2) * call : full(3, 2) + 1)) << call;
    ASSERT_EQ(steps, call);
  }
  EXPECT_EQ(only_break(fast.report()).op, "sinter::host") << fast.report();
}

TEST_F(Host, compiled_functions_in_each_other_run_it_once) {
  int inner_steps = 0, outer_steps = 0;
  auto inner = compile(
      [&](const Tensor& x) {
        host([&] { ++inner_steps; });
        return (x.sum() > 2).item<bool>() ? x + 1 : x - 1;
      },
      trusted());
  const auto program = [&](const Tensor& x) {
    host([&] { ++outer_steps; });
    const Tensor y = inner(x);
    return at::pow(y, y.max().item<float>());
  };
  auto fast = compile(program, trusted({.max_paths = 3}));
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

TEST_F(Host, a_host_function_keeps_grad_mode_as_it_is_where_it_stands) {
  int with = 0, without = 0;
  auto fast = compile(
      [&](const Tensor& x) {
        const at::AutoGradMode on(true);
        host([&] { ++(at::GradMode::is_enabled() ? with : without); });
        const c10::NoGradGuard off;
        host([&] { ++(at::GradMode::is_enabled() ? with : without); });
        return x + 1;
      },
      trusted());
  for (int call = 1; call <= 10; ++call) {
    fast(full(2, 1));
    ASSERT_EQ(with, call);
    ASSERT_EQ(without, call);
  }
  EXPECT_GE(replays(fast.report()), 4) << fast.report();
}

TEST_F(Host, values_that_are_captured_are_part_of_the_program) {
  int64_t hidden = 1;
  std::vector<int64_t> log;
  auto fast = compile(
      [&](const Tensor& x) {
        const int64_t value = hidden;
        host([&log, value] { log.push_back(value); });
        return x + 1;
      },
      trusted());
  fast(full(2, 1));
  hidden = 2;
  fast(full(2, 1));
  fast(full(2, 1));
  EXPECT_EQ(log, (std::vector<int64_t>{1, 2, 2}));
  EXPECT_EQ(only_break(fast.report()).code, BreakCode::unstable) << fast.report();
}

TEST_F(Host, a_local_variable_captured_by_reference_is_a_break) {
  double total = 0;
  auto fast = compile(
      [&](const Tensor& x) {
        const double local = x.size(0);
        host([&] { total += local; });
        return x + 1;
      },
      trusted());
  for (int call = 1; call <= 4; ++call) fast(full(2, 1));
  EXPECT_EQ(total, 8);
  EXPECT_NE(only_break(fast.report()).reason.find("local variable"), std::string::npos) << fast.report();
}

TEST_F(Host, a_container_captured_by_value_is_a_break) {
  std::string log;
  auto fast = compile(
      [&](const Tensor& x) {
        host([&log, name = std::string("name")] { log += name; });
        return x + 1;
      },
      trusted());
  for (int call = 1; call <= 4; ++call) fast(full(2, 1));
  EXPECT_EQ(log, "namenamenamename");
  EXPECT_NE(only_break(fast.report()).reason.find("plain values"), std::string::npos) << fast.report();
}

TEST_F(Host, a_tensor_of_the_call_that_is_not_passed_is_a_break) {
  double total = 0;
  auto fast = compile(
      [&](const Tensor& x) {
        host([&] { total += x.sum().item<double>(); });
        return x + 1;
      },
      trusted());
  for (int call = 1; call <= 4; ++call) {
    const Tensor x = full(2, call);
    fast(x);
  }
  EXPECT_EQ(total, 20);
  EXPECT_NE(only_break(fast.report()).hint.find("as an argument"), std::string::npos) << fast.report();
}

TEST_F(Host, state_that_a_host_function_writes_and_the_program_reads_is_a_break) {
  Tensor mean = full(2, 0);
  const auto program = [](Tensor& average, const Tensor& x) {
    const Tensor before = average + x;
    host([](const Tensor& t, const Tensor& a) { const_cast<Tensor&>(a).mul_(0.5).add_(t); }, x, average);
    return before + average;
  };
  auto fast = compile([&](const Tensor& x) { return program(mean, x); }, trusted());
  Tensor expected = full(2, 0);
  for (int call = 1; call <= 4; ++call) {
    ASSERT_TRUE(same(fast(full(2, call)), program(expected, full(2, call)))) << call;
    ASSERT_TRUE(same(mean, expected)) << call;
  }
  EXPECT_NE(only_break(fast.report()).reason.find("writes a tensor"), std::string::npos) << fast.report();
}

TEST_F(Host, a_tensor_of_the_call_that_a_host_function_writes_is_a_break) {
  auto fast = compile(
      [](const Tensor& x) {
        const Tensor y = x * 2;
        host([](const Tensor& t) { const_cast<Tensor&>(t).add_(1); }, y);
        return y * 3;
      },
      trusted());
  for (int call = 1; call <= 4; ++call) ASSERT_TRUE(same(fast(full(2, call)), (full(2, call) * 2 + 1) * 3)) << call;
  EXPECT_NE(only_break(fast.report()).reason.find("writes a tensor"), std::string::npos) << fast.report();
}

TEST_F(Host, tensors_of_its_own_may_be_written_and_clones_kept) {
  Tensor sum = full(2, 0);
  std::vector<Tensor> kept;
  auto fast = compile(
      [&](const Tensor& x) {
        const Tensor y = x * 2;
        host(
            [&](const Tensor& t) {
              sum.add_(t);
              kept.push_back(t.clone());
            },
            y);
        return y + 1;
      },
      trusted({.strict = true}));
  for (int call = 1; call <= 10; ++call) {
    fast(full(2, call));
    ASSERT_TRUE(same(sum, full(2, call * (call + 1)))) << call;
    ASSERT_TRUE(same(kept.back(), full(2, 2 * call))) << call;
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(replays(fast.report()), 6) << fast.report();
}

TEST_F(Host, another_function_at_the_same_place_is_found_by_a_verification) {
  int first = 0, second = 0, calls = 0;
  auto fast = compile(
      [&](const Tensor& x) {
        if (calls == 0) {
          host([&] { ++first; });
        } else {
          host([&] { ++second; });
        }
        return x + 1;
      },
      trusted());
  fast(full(2, 1));
  calls = 1;
  for (int call = 2; call <= 6; ++call) fast(full(2, 1));
  EXPECT_EQ(only_break(fast.report()).code, BreakCode::unstable) << fast.report();
}

TEST_F(Host, printing_happens_when_it_is_recorded_and_in_a_host_function_on_every_call) {
  std::ostringstream recorded, called;
  auto fast = compile(
      [&](const Tensor& x) {
        const Tensor y = x * 2;
        recorded << y << '\n';
        host([&](const Tensor& t) { called << t << '\n'; }, y);
        return y + 1;
      },
      trusted({.strict = true}));
  std::ostringstream expected;
  for (int call = 1; call <= 8; ++call) {
    fast(full(2, call));
    expected << full(2, call) * 2 << '\n';
  }
  EXPECT_EQ(called.str(), expected.str());
  EXPECT_LT(recorded.str().size(), called.str().size());
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_F(Host, fullgraph_takes_host_functions) {
  int steps = 0;
  auto fast = compile([&](const Tensor& x) { return host([&] { return ++steps % 2 == 0; }) ? x + 1 : x - 1; },
                      trusted({.fullgraph = true, .strict = true}));
  for (int call = 1; call <= 8; ++call) {
    ASSERT_TRUE(same(fast(full(2, 1)), call % 2 == 0 ? full(2, 2) : full(2, 0))) << call;
  }
}

TEST_F(Host, effects_of_two_threads_run_once_a_call) {
  std::atomic<int64_t> steps = 0, total = 0;
  auto fast = compile(
      [&](const Tensor& x) {
        host([&] { ++steps; });
        const bool even = (x.sum() > 10).item<bool>();
        host([&](const Tensor& t) { total += t[0].item<int64_t>(); }, x);
        return even ? x + 1 : x - 1;
      },
      trusted());
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
