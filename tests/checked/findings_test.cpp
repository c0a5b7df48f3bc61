// What a function finds in its program and tells: breaks, branches, promises that are not kept. Under fullgraph a break
// is an error, and the call leaves nothing behind.
#include <c10/core/GradMode.h>

#include <functional>
#include <string>
#include <vector>

#include "checked.h"

namespace sinter::test {
namespace {

class FindingsOf : public Checked {
 protected:
  [[nodiscard]] Options told(Options options = checked()) {
    options.name = "f";
    options.on_event = [this](const Event& event) { events_.push_back(event); };
    return options;
  }
  [[nodiscard]] std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const Event& event : events_) texts.push_back(event.text());
    return texts;
  }

  c10::NoGradGuard no_grad_;
  std::vector<Event> events_;
};

at::Tensor through_sparse(const at::Tensor& x) { return (x * 2).to_sparse().to_dense() + 1; }

TEST_F(FindingsOf, an_operator_that_no_segment_can_hold_is_one_break_with_its_place) {
  auto fast = compile(through_sparse, told());
  const auto x = at::ones({4});
  for (int call = 0; call < 5; ++call) EXPECT_TRUE(same(fast(x), through_sparse(x)));
  const auto breaks = fast.report().entries.back().breaks;
  ASSERT_FALSE(breaks.empty());
  EXPECT_EQ(breaks[0].code, BreakCode::unsupported_op);
  EXPECT_NE(breaks[0].where.find("through_sparse"), std::string::npos) << breaks[0].where;
  EXPECT_EQ(events_.size(), breaks.size());
  EXPECT_EQ(fast.stats().breaks, static_cast<int64_t>(breaks.size()));
  EXPECT_EQ(fast.stats().replayed, 4) << "what lies around it is compiled";
}

TEST_F(FindingsOf, a_first_recording_and_replays_tell_nothing) {
  auto fast = compile([](const at::Tensor& x) { return x.item<float>() > 0 ? x * 2 : x * 3; }, told());
  for (int call = 0; call < 6; ++call) fast(at::ones({}));
  EXPECT_TRUE(events_.empty()) << texts()[0];
}

TEST_F(FindingsOf, a_branch_names_the_operator_and_what_differs) {
  auto fast = compile([](const at::Tensor& x) { return at::relu(x) + 1; }, told());
  for (const auto dtype : {at::kFloat, at::kFloat, at::kDouble, at::kDouble}) fast(at::ones({8, 3}, dtype));
  ASSERT_EQ(events_.size(), 1);
  EXPECT_EQ(texts()[0], "f  f64[8,3]  recompiled: operator 1, aten::relu was f32[8,3], is f64[8,3]");
  EXPECT_EQ(fast.stats().recompilations, 1);
}

TEST_F(FindingsOf, a_branch_of_other_operators_names_both) {
  bool negate = false;
  auto fast = compile([&](const at::Tensor& x) { return negate ? at::neg(x * 2) : at::abs(x * 2); }, told());
  for (int call = 0; call < 6; ++call) {
    negate = call >= 3;
    fast(at::ones({4}));
  }
  ASSERT_EQ(events_.size(), 1);
  EXPECT_EQ(texts()[0], "f  f32[4]  recompiled: operator 2 was aten::abs, is aten::neg");
}

TEST_F(FindingsOf, fullgraph_refuses_a_break_before_anything_is_written) {
  auto options = told();
  options.fullgraph = true;
  const auto state = at::zeros({4}), other = at::zeros({4});
  auto fast = compile(
      [&](const at::Tensor& x) {
        state.add_(x);
        const bool more = other.add_(state).sum().item<float>() > 0;
        return more ? state.to_sparse().to_dense() : state * 2;
      },
      options);
  for (int call = 0; call < 4; ++call) {
    try {
      fast(at::ones({4}));
      FAIL() << "no error";
    } catch (const UserError& error) {
      EXPECT_EQ(std::string(error.what()).find("f: fullgraph: unsupported-op aten::"), 0) << error.what();
    }
    EXPECT_TRUE(same(state, at::zeros({4}))) << "call " << call;
    EXPECT_TRUE(same(other, at::zeros({4}))) << "call " << call;
  }
  EXPECT_EQ(fast.stats().threw, 4);
  EXPECT_EQ(events_.size(), 1);
}

TEST_F(FindingsOf, fullgraph_takes_host_reads_and_branches) {
  auto options = told();
  options.fullgraph = true;
  const auto program = [](const at::Tensor& x) { return x.sum().item<float>() > 0 ? x * 2 : x * 3; };
  auto fast = compile(program, options);
  for (int call = 0; call < 8; ++call) {
    const auto x = at::full({4}, call % 2 == 0 ? 1.0 : -1.0);
    EXPECT_TRUE(same(fast(x), program(x)));
  }
  EXPECT_EQ(fast.stats().breaks, 0);
}

TEST_F(FindingsOf, fullgraph_refuses_memory_that_the_callable_looks_at) {
  auto options = told();
  options.fullgraph = true;
  auto fast = compile(
      [](const at::Tensor& x) {
        const auto y = x * 2;
        return at::full({}, *y.const_data_ptr<float>());
      },
      options);
  const auto x = at::ones({2});
  EXPECT_EQ(fast(x).item<float>(), 2) << "recorded: there is memory";
  for (int call = 0; call < 3; ++call) EXPECT_THROW((void)fast(x), UserError);
}

TEST_F(FindingsOf, an_exception_of_the_callback_does_not_reach_the_caller_and_is_noted_once) {
  auto options = checked();
  options.on_event = [](const Event&) { throw std::runtime_error("no log"); };
  auto fast = compile([](const at::Tensor& x) { return x + 1; }, options);
  for (const int64_t size : {1, 2, 3, 4}) fast(at::ones({size}));
  const auto notes = fast.report().notes;
  EXPECT_EQ(std::ranges::count(notes, "on_event threw: no log"), 1);
}

TEST_F(FindingsOf, a_callback_may_look_call_and_reset) {
  std::function<at::Tensor(const at::Tensor&)> again;
  auto options = checked();
  int depth = 0;
  options.on_event = [&](const Event&) {
    if (++depth == 1) {
      EXPECT_TRUE(same(again(at::ones({5})), at::ones({5}) * 2));
    }
    --depth;
  };
  auto fast = compile([](const at::Tensor& x) { return x * 2; }, options);
  again = [&](const at::Tensor& x) { return fast(x); };
  for (int64_t call = 0; call < 12; ++call) {
    const auto x = at::ones({2 + call % 3});
    EXPECT_TRUE(same(fast(x), x * 2));
    if (call == 7) fast.reset();
  }
}

TEST_F(FindingsOf, a_size_outside_of_what_mark_dynamic_promised_is_refused) {
  auto fast = compile([](const at::Tensor& x) { return x * 2; }, told());
  const auto marked = at::ones({4, 3});
  mark_dynamic(marked, 0, 2, 8);
  fast(marked);
  EXPECT_TRUE(same(fast(at::ones({8, 3})), at::ones({8, 3}) * 2));
  EXPECT_THROW((void)fast(at::ones({9, 3})), UserError);
}

}  // namespace
}  // namespace sinter::test
