#include "runtime/steady_inputs.h"

#include <gtest/gtest.h>

#include "tests/runtime/fake_host.h"
#include "tests/runtime/plan_builder.h"

namespace sinter::runtime {
namespace {

using Buffers = std::vector<BufferId>;
using Next = SteadyInputs::Next;

struct Steady : testing::Test {
  fake::PlanBuilder b{Backend::cuda};
  BufferId x = b.add(BufferKind::input, 8, 0);
  BufferId w = b.add(BufferKind::input, 8, 1);
  fake::Host host;
  fake::Frame frame{b.plan, host};
  SteadyInputs inputs{{{x, 0}, {w, 15}}, true};
  char memory[256]{};

  void put(BufferId buffer, int64_t place) { frame.set(buffer, {nullptr, memory + place}); }
  void SetUp() override {
    put(x, 0);
    put(w, 64 - static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory) % 16));
  }
  void record() {
    ASSERT_EQ(inputs.next(frame), Next::launch);
    ASSERT_EQ(inputs.next(frame), Next::record);
    inputs.recorded();
  }
};

TEST_F(Steady, are_those_at_one_address_in_two_calls) {
  EXPECT_EQ(inputs.next(frame), Next::launch);
  put(x, 4);
  EXPECT_EQ(inputs.next(frame), Next::record);
  EXPECT_EQ(inputs.steady(), Buffers{w});
  EXPECT_EQ(inputs.copied(), Buffers{x});
  inputs.recorded();
  put(x, 8);
  EXPECT_EQ(inputs.next(frame), Next::replay);
}

TEST_F(Steady, are_copied_for_good_once_they_moved) {
  record();
  put(x, 4);
  EXPECT_EQ(inputs.next(frame), Next::launch);
  put(x, 0);
  EXPECT_EQ(inputs.next(frame), Next::record);
  EXPECT_EQ(inputs.steady(), Buffers{w});
  inputs.recorded();
  EXPECT_EQ(inputs.next(frame), Next::replay);
}

TEST_F(Steady, record_again_until_a_recording_succeeds) {
  EXPECT_EQ(inputs.next(frame), Next::launch);
  EXPECT_EQ(inputs.next(frame), Next::record);
  EXPECT_EQ(inputs.next(frame), Next::record);
}

TEST_F(Steady, are_aligned_as_kernels_need_them) {
  put(w, 65 - static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory) % 16));
  record();
  EXPECT_EQ(inputs.steady(), Buffers{x});
  EXPECT_EQ(inputs.copied(), Buffers{w});
}

TEST_F(Steady, none_where_none_may_be) {
  SteadyInputs copies({{x, 0}, {w, 0}}, false);
  EXPECT_EQ(copies.next(frame), Next::record);
  EXPECT_TRUE(copies.steady().empty());
  copies.recorded();
  put(x, 4);
  EXPECT_EQ(copies.next(frame), Next::replay);
}

TEST_F(Steady, none_are_needed_to_record_the_first_call) {
  SteadyInputs nothing({}, true);
  EXPECT_EQ(nothing.next(frame), Next::record);
}

TEST_F(Steady, none_are_left_with_the_last_recording) {
  std::vector<SteadyInputs::Input> many;
  for (uint32_t i = 0; i < 10; ++i) {
    many.push_back({b.add(BufferKind::input, 8, i), 0});
  }
  fake::Frame call(b.plan, host);
  for (const auto& input : many) call.set(input.buffer, {nullptr, memory});
  SteadyInputs moving(many, true);
  ASSERT_EQ(moving.next(call), Next::launch);
  for (int recording = 1; recording <= SteadyInputs::most_recordings; ++recording) {
    EXPECT_FALSE(moving.gave_up());
    ASSERT_EQ(moving.next(call), Next::record);
    moving.recorded();
    call.set(many[static_cast<size_t>(recording)].buffer, {nullptr, memory + 4});
    if (recording == SteadyInputs::most_recordings) break;
    ASSERT_EQ(moving.next(call), Next::launch) << recording;
  }
  EXPECT_TRUE(moving.gave_up());
  EXPECT_TRUE(moving.steady().empty());
  EXPECT_EQ(moving.next(call), Next::replay);
}

}  // namespace
}  // namespace sinter::runtime
