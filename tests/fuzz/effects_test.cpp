#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "check.h"
#include "execute.h"
#include "generate.h"
#include "print.h"
#include "shrink.h"

namespace sinter::test::fuzz {
namespace {

using hostile::Observation;

constexpr Name kInput = 1;
constexpr Name kFirst = 2;
constexpr Name kSecond = 3;

hostile::Place trusted() {
  hostile::Place place;
  place.replay = Replay::trusted;
  return place;
}

Source vector(Name name) {
  Source source;
  source.name = name;
  source.sizes = {3};
  return source;
}

/// A program of one argument and two closed-over tensors, all three alike, that returns the first of these.
Program program_of(std::vector<Instruction> body, int calls = 8) {
  Program program;
  program.inputs = {vector(kInput)};
  program.state = {vector(kFirst), vector(kSecond)};
  program.body.body = std::move(body);
  program.outputs = {kFirst};
  program.calls.resize(calls);
  return program;
}

const Row& row(std::span<const Row> rows, std::string_view text) {
  const auto found = std::ranges::find_if(rows, [&](const Row& row) { return row.text == text; });
  if (found == rows.end()) throw std::invalid_argument(std::string(text));
  return *found;
}

Instruction effect(std::string_view text, std::vector<Name> operands = {}, std::vector<double> numbers = {}) {
  Instruction made;
  made.row = &row(host_rows(), text);
  made.operands = std::move(operands);
  made.numbers = std::move(numbers);
  return made;
}

Instruction computed(std::string_view text, Name result, std::vector<Name> operands, std::vector<double> numbers = {}) {
  Instruction made;
  made.row = &row(rows(), text);
  made.result = result;
  made.operands = std::move(operands);
  made.numbers = std::move(numbers);
  return made;
}

std::vector<Observation> observed(const Program& program, bool compiled = false) {
  hostile::Session session({}, compiled);
  run(program, session);
  return session.finish();
}

/// What calls showed: of every call there are three observations.
const Observation& call(const std::vector<Observation>& all, int number) { return all.at((number - 1) * 3); }

at::Tensor value(const Observation& seen, std::string_view label) {
  const auto found = std::ranges::find_if(seen.values, [&](const auto& held) { return held.label == label; });
  return found == seen.values.end() ? at::Tensor() : found->tensor;
}

bool has(const Block& block, Effect effect) {
  return std::ranges::any_of(block.body, [&](const Instruction& made) {
    return made.row->effect == effect ||
           std::ranges::any_of(made.blocks, [&](const Block& inner) { return has(inner, effect); });
  });
}

std::string printed(uint64_t programs) {
  std::string text;
  for (uint64_t seed = 1; seed <= programs; ++seed) text += to_cpp(generate(seed, {}));
  return text;
}

TEST(FuzzEffects, are_drawn_only_where_replays_run_the_host_code) {
  int with_effects = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    EXPECT_FALSE(has_effects(generate(seed, trusted()))) << seed;
    with_effects += has_effects(generate(seed, {})) ? 1 : 0;
  }
  EXPECT_GT(with_effects, 36);
  EXPECT_LT(with_effects, 60);
}

TEST(FuzzEffects, are_the_same_for_the_same_seed) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(to_cpp(generate(seed, {})), to_cpp(generate(seed, {})));
  }
}

TEST(FuzzEffects, of_every_kind_are_drawn) {
  const std::string programs = printed(150);
  for (const char* text :
       {"std::swap(s", "std::exchange(s", "coin()) {", "flag = !flag", "flag = step %", "throw std::runtime_error",
        "set_lr(rate)", "->train(flag)", "= Tensor();", "if (flag) {", "AutoGradMode mode(flag)", "i < step %",
        "if (step %", "1.0 * step", "rate", "drawn", "(1 + step % 3)", "(step % 2)", ".lerp_("}) {
    EXPECT_NE(programs.find(text), std::string::npos) << text;
  }
}

TEST(FuzzEffects, numbers_and_coins_are_those_of_the_call) {
  Host one(7), other(7), third(8);
  std::string coins, others;
  for (int call = 1; call <= 40; ++call) {
    for (Host* host : {&one, &other, &third}) host->begin_call();
    EXPECT_EQ(one.value_of(kStep), call);
    EXPECT_EQ(one.value_of(kParity), call % 2);
    EXPECT_EQ(one.value_of(kDrawn), other.value_of(kDrawn));
    const bool coin = one.coin();
    EXPECT_EQ(coin, other.coin());
    coins += coin ? '1' : '0';
    others += third.coin() ? '1' : '0';
  }
  EXPECT_NE(coins.find('0'), std::string::npos);
  EXPECT_NE(coins.find('1'), std::string::npos);
  EXPECT_NE(coins, others);
}

TEST(FuzzEffects, a_tensor_is_kept_until_the_next_call) {
  const auto seen =
      observed(program_of({computed("t[0] + t[1]", 4, {kFirst, kInput}), effect("t[0] = t[1]", {kFirst, 4})}));
  for (int n = 2; n <= 8; ++n) {
    const auto sum = value(call(seen, n - 1), "state s2") + value(call(seen, n), "argument 0");
    EXPECT_TRUE(at::equal(value(call(seen, n), "state s2"), sum)) << n;
  }
}

TEST(FuzzEffects, variables_change_what_they_hold) {
  const auto swapped = observed(program_of({effect("std::swap(t[0], t[1])", {kFirst, kSecond})}));
  const auto exchanged =
      observed(program_of({effect("t[1] = std::exchange(t[0], t[2].detach())", {kFirst, kSecond, kInput})}));
  for (int n = 2; n <= 8; ++n) {
    EXPECT_TRUE(at::equal(value(call(swapped, n), "state s2"), value(call(swapped, n - 1), "state s3"))) << n;
    EXPECT_TRUE(at::equal(value(call(exchanged, n), "state s3"), value(call(exchanged, n - 1), "state s2"))) << n;
    EXPECT_TRUE(at::equal(value(call(exchanged, n), "state s2"), value(call(exchanged, n), "argument 0"))) << n;
  }
}

TEST(FuzzEffects, some_calls_throw_half_way) {
  const auto seen =
      observed(program_of({computed("t[0].mul_(n[0])", 4, {kFirst}, {kStep}),
                           effect("if (step % n[0] == n[1]) throw std::runtime_error(\"half way\")", {}, {3, 1}),
                           computed("t[0].fill_(n[0])", 5, {kFirst}, {2})}));
  for (int n = 1; n <= 8; ++n) {
    EXPECT_EQ(call(seen, n).facts.find("half way") != std::string::npos, n % 3 == 1) << n;
    const at::Tensor state = value(call(seen, n), "state s2");
    if (n > 1) {
      EXPECT_EQ(state[0].item<double>(), n % 3 == 1 ? 2 * n : 2) << n;
    }
  }
}

TEST(FuzzEffects, a_compiled_run_agrees) {
  Instruction loop;
  loop.row = &row(control_rows(), "step % n[0]");
  loop.result = 6;
  loop.operands = {kSecond};
  loop.numbers = {4};
  loop.blocks = {{{computed("t[0] + t[1]", 7, {6, kInput})}, 7}};
  const auto program = program_of(
      {effect("flag = !flag"), computed("t[0] * n[0]", 4, {kFirst}, {kRate}), loop,
       effect("t[1] = std::exchange(t[0], t[2].detach())", {kFirst, kSecond, 6}), effect("t[0] = Tensor()", {4})},
      16);
  const Finding finding = check(program, {});
  EXPECT_EQ(finding.verdict, Verdict::equal) << finding.difference;
  EXPECT_TRUE(finding.effects);
  EXPECT_GE(finding.replayed, 8) << finding.report;
}

TEST(FuzzEffects, what_the_host_keeps_is_compared) {
  auto program = program_of({effect("flag = !flag")}, 1);
  const auto one = observed(program);
  program.calls[0].before = Event::toggle_flag;
  EXPECT_TRUE(hostile::difference(one, observed(program), hostile::Numbers::exact));
  program.calls[0].before = Event::swap_state;
  EXPECT_TRUE(hostile::difference(one, observed(program), hostile::Numbers::exact));
}

TEST(FuzzEffects, are_left_out_where_a_failure_does_not_need_them) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto any = [](const Program& program) { return !program.calls.empty(); };
    EXPECT_FALSE(has_effects(shrink(generate(seed, {}), any))) << seed;
  }
}

TEST(FuzzEffects, are_kept_where_a_failure_needs_them) {
  const auto swaps = [](const Program& program) { return has(program.body, Effect::swap); };
  int found = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const auto program = generate(seed, {});
    if (!swaps(program)) continue;
    const auto small = shrink(program, swaps);
    EXPECT_EQ(small.body.body.size(), 1U) << to_cpp(small);
    EXPECT_NE(to_cpp(small).find("std::swap"), std::string::npos);
    ++found;
  }
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace sinter::test::fuzz
