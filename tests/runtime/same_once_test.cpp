#include "runtime/same_once.h"

#include <gtest/gtest.h>

namespace sinter::runtime {
namespace {

ir::Type row(int64_t size) { return ir::contiguous(ir::DType::f32, {size}, {}); }

/// A plan that doubles a weight once, and knows an input of `size`, which stands before or after the weight.
Plan doubling(int64_t size, double factor, bool input_first) {
  Plan plan;
  const Buffer input{.kind = BufferKind::input, .type = row(size), .index = 0, .offset = 0, .base = {}};
  const Buffer weight{.kind = BufferKind::state, .type = row(8), .index = 3, .offset = 0, .base = {}};
  const Buffer kept{.kind = BufferKind::frozen, .type = row(8), .index = 0, .offset = 0, .base = {}};
  plan.buffers = input_first ? std::vector{input, weight, kept} : std::vector{weight, kept, input};
  const uint32_t first = input_first ? 1 : 0;
  plan.calls.push_back({.op = "aten::mul.Scalar",
                        .args = {{ir::ValueId{first}}, {factor}},
                        .results = {BufferId{first + 1}},
                        .module = {},
                        .source = {}});
  plan.once.emplace_back(RunCall{0});
  return plan;
}

TEST(SameOnce, pairs_the_frozen_buffers_of_plans_that_compute_the_same_from_state) {
  const auto pairs = same_once(doubling(4, 2, true), doubling(9, 2, false));
  ASSERT_TRUE(pairs.has_value());
  ASSERT_EQ(pairs->size(), 1);
  EXPECT_EQ(pairs->front().first, BufferId{2});
  EXPECT_EQ(pairs->front().second, BufferId{1});
}

TEST(SameOnce, has_nothing_where_another_number_state_or_type_is_used) {
  EXPECT_FALSE(same_once(doubling(4, 2, true), doubling(4, 3, true)).has_value());
  Plan other = doubling(4, 2, true);
  other.buffers[1].index = 4;
  EXPECT_FALSE(same_once(doubling(4, 2, true), other).has_value());
  other = doubling(4, 2, true);
  other.buffers[2].type = row(7);
  EXPECT_FALSE(same_once(doubling(4, 2, true), other).has_value());
}

TEST(SameOnce, has_nothing_where_a_random_operator_or_an_input_has_a_part) {
  Plan random = doubling(4, 2, true);
  random.calls[0].random = true;
  EXPECT_FALSE(same_once(random, random).has_value());
  Plan reading = doubling(4, 2, true);
  reading.calls[0].args[0] = {ir::ValueId{0}};
  EXPECT_FALSE(same_once(reading, reading).has_value());
}

}  // namespace
}  // namespace sinter::runtime
