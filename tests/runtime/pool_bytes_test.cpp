#include "runtime/pool_bytes.h"

#include <gtest/gtest.h>

#include "tests/runtime/plan_builder.h"

namespace sinter::runtime {
namespace {

using fake::PlanBuilder;

constexpr int64_t mebi = int64_t{1} << 20;
constexpr int64_t one_mebi_of_f32 = mebi / 4;

struct PoolBytes : testing::Test {
  PlanBuilder b{Backend::cuda};
  BufferId x = b.add(BufferKind::input, one_mebi_of_f32, 0);

  BufferId result(int64_t mebibytes) { return b.add(BufferKind::result, mebibytes * one_mebi_of_f32); }
  void run(BufferId from, BufferId to) { b.step(RunCall{b.add_call("aten::mm", {from}, {to})}); }
  [[nodiscard]] int64_t bytes(const std::vector<BufferId>& given = {}, const std::vector<BufferId>& copied = {}) const {
    return pool_bytes(b.plan, flatten(b.plan, b.plan.steps, given), given, copied);
  }
};

TEST_F(PoolBytes, counts_what_is_alive_at_one_time) {
  const BufferId first = result(8);
  const BufferId second = result(2);
  const BufferId third = result(4);
  run(x, first);
  run(first, second);
  b.step(Release{first});
  run(second, third);
  b.step(Release{second});
  b.plan.outputs = {third};
  EXPECT_EQ(bytes(), 10 * mebi);
}

TEST_F(PoolBytes, holds_memory_as_long_as_a_view_of_it) {
  const BufferId first = result(8);
  const BufferId view = b.add(BufferKind::view, 4, 0, 0, first);
  const BufferId second = result(2);
  run(x, first);
  b.step(Bind{view});
  b.step(Release{first});
  run(view, second);
  b.step(Release{view});
  b.plan.outputs = {second};
  EXPECT_EQ(bytes(), 10 * mebi);
}

TEST_F(PoolBytes, leaves_out_what_lies_elsewhere_and_what_is_small) {
  const BufferId output = b.add(BufferKind::output, 8 * one_mebi_of_f32);
  const BufferId small = b.add(BufferKind::result, 16);
  run(x, small);
  b.step(Allocate{output});
  b.plan.outputs = {output};
  EXPECT_EQ(bytes({output}), 0);
  EXPECT_EQ(bytes(), 8 * mebi);
}

TEST_F(PoolBytes, has_copies_of_inputs_and_the_arena_all_the_time) {
  const BufferId y = result(2);
  run(x, y);
  b.plan.outputs = {y};
  EXPECT_EQ(bytes({}, {x}), 3 * mebi);
}

}  // namespace
}  // namespace sinter::runtime
