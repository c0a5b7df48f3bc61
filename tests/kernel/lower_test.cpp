#include <gtest/gtest.h>

#include <string_view>

#include "compiler/ir/parse.h"
#include "compiler/kernel/lower.h"
#include "compiler/support/errors.h"

/// From a fused body to its loop nest.
namespace sinter::test {
namespace {

using kernel::Kernel;
using kernel::Load;
using kernel::Param;

Kernel lowered(std::string_view text) { return kernel::lower(ir::parse(text), "fused"); }

std::vector<Load> loads(const Kernel& kernel) {
  std::vector<Load> all;
  for (const auto& instruction : kernel.body) {
    if (const auto* load = std::get_if<Load>(&instruction.operation)) all.push_back(*load);
  }
  return all;
}

using Extents = std::vector<int64_t>;

TEST(Lower, contiguous_tensors_of_any_rank_are_one_loop) {
  const Kernel k = lowered(R"(graph @g on cuda:0 (%x: f32[2,3,4]) -> (%z) {
    %z = neg %x : f32[2,3,4]
  })");
  EXPECT_EQ(k.extents, Extents({24}));
  EXPECT_EQ(k.numel(), 24);
  EXPECT_EQ(k.bytes_moved(), 2 * 24 * 4);
}

TEST(Lower, loops_follow_the_first_output_and_not_the_order_of_dims) {
  const Kernel k = lowered(R"(graph @g on cuda:0 (%x: f32[2,8,4,4]{128,1,32,8}) -> (%z) {
    %z = neg %x : f32[2,8,4,4]{128,1,32,8}
  })");
  EXPECT_EQ(k.extents, Extents({256}));
}

TEST(Lower, a_broadcast_operand_keeps_its_loops_apart) {
  const Kernel k = lowered(R"(graph @g on cuda:0 (%x: f32[2,8,4,4], %s: f32[8,1,1]) -> (%z) {
    %z = mul %x, %s : f32[2,8,4,4]
  })");
  EXPECT_EQ(k.extents, Extents({2, 8, 16}));
  EXPECT_EQ(loads(k)[1].index.affine.strides, Extents({0, 1, 0}));
  EXPECT_EQ(k.bytes_moved(), (256 + 8 + 256) * 4);
}

TEST(Lower, dims_of_size_one_make_no_loop) {
  const Kernel k = lowered(R"(graph @g on cuda:0 (%x: f32[1,5,1]{99,1,7}) -> (%z) {
    %z = neg %x : f32[1,5,1]
  })");
  EXPECT_EQ(k.extents, Extents({5}));
}

TEST(Lower, a_scalar_has_no_loop_and_an_empty_tensor_no_points) {
  const Kernel scalar = lowered(R"(graph @g on cuda:0 (%x: f32[]) -> (%z) {
    %z = neg %x : f32[]
  })");
  EXPECT_TRUE(scalar.extents.empty());
  EXPECT_EQ(scalar.numel(), 1);
  const Kernel empty = lowered(R"(graph @g on cuda:0 (%x: f32[4,0]) -> (%z) {
    %z = neg %x : f32[4,0]
  })");
  EXPECT_EQ(empty.numel(), 0);
  EXPECT_EQ(empty.bytes_moved(), 0);
  EXPECT_EQ(empty.params.size(), 2U);
}

TEST(Lower, an_input_read_twice_at_the_same_place_is_loaded_once) {
  const Kernel k = lowered(R"(graph @g on cuda:0 (%x: f32[8]) -> (%z) {
    %v = view %x + 0 : f32[8]
    %z = add %x, %v : f32[8]
  })");
  EXPECT_EQ(loads(k).size(), 1U);
}

TEST(Lower, views_of_an_input_address_its_storage) {
  const Kernel k = lowered(R"(graph @g on cuda:0 (%x: f32[6,4]) -> (%z) {
    %t = view %x + 4 : f32[4,5]{1,4}
    %s = view %t + 1 : f32[3,5]{1,4}
    %z = neg %s : f32[3,5]
  })");
  EXPECT_EQ(loads(k)[0].index.affine.offset, 5);
  EXPECT_EQ(loads(k)[0].index.affine.strides, Extents({1, 4}));
}

TEST(Lower, views_of_a_computed_value_ask_for_it_at_other_points) {
  const Kernel k = lowered(R"(graph @g on cuda:0 (%x: f32[6,4]) -> (%z) {
    %n = neg %x : f32[6,4]
    %t = view %n + 0 : f32[4,6]{1,4}
    %z = add %t, 1 : f32[4,6]
  })");
  EXPECT_EQ(loads(k)[0].index.affine.strides, Extents({1, 4}));
}

TEST(Lower, a_cpu_scalar_beside_gpu_tensors_is_passed_by_value) {
  const Kernel k = lowered(R"(graph @g on cuda:0 (%x: f32[8], %s: f64[]@cpu) -> (%z) {
    %c = cast %s : f32[]
    %z = mul %x, %c : f32[8]
  })");
  EXPECT_EQ(k.params[1].role, Param::Role::host_scalar);
  const Kernel on_cpu = lowered(R"(graph @g on cpu (%x: f32[8], %s: f32[]) -> (%z) {
    %z = mul %x, %s : f32[8]
  })");
  EXPECT_EQ(on_cpu.params[1].role, Param::Role::input);
}

TEST(Lower, halves_compute_in_float_and_round_after_every_op_that_gives_a_half) {
  const Kernel k = lowered(R"(graph @g on cuda:0 (%x: f16[8]) -> (%z) {
    %a = add %x, 1 : f16[8]
    %z = neg %a : f16[8]
  })");
  std::vector<ir::DType> dtypes;
  for (const auto& instruction : k.body) {
    if (std::holds_alternative<kernel::Compute>(instruction.operation)) dtypes.push_back(instruction.dtype);
  }
  using enum ir::DType;
  EXPECT_EQ(dtypes, std::vector<ir::DType>({f32, f32, f16, f32, f32, f16}));
}

TEST(Lower, a_condition_that_is_a_number_is_a_bool) {
  const Kernel k = lowered(R"(graph @g on cpu (%x: f32[8]) -> (%z) {
    %z = where 0.0, -1, %x : f32[8]
  })");
  const auto& condition = k.body.at(0);
  ASSERT_TRUE(std::holds_alternative<kernel::Immediate>(condition.operation));
  EXPECT_EQ(condition.dtype, ir::DType::b8);
}

TEST(Lower, several_outputs_share_what_they_compute) {
  const Kernel k = lowered(R"(graph @g on cuda:0 (%x: f32[8]) -> (%y, %z) {
    %y = exp %x : f32[8]
    %z = neg %y : f32[8]
  })");
  EXPECT_EQ(k.stores.size(), 2U);
  EXPECT_EQ(k.body.size(), 3U);
}

TEST(Lower, a_body_with_an_aten_call_is_a_bug) {
  EXPECT_THROW(lowered(R"(graph @g on cuda:0 (%x: f32[8]) -> (%z) {
    %z = call aten.neg(%x) : f32[8]
  })"),
               InternalError);
}

}  // namespace
}  // namespace sinter::test
