#include "runtime/graph_layout.h"

#include <gtest/gtest.h>

#include "tests/runtime/plan_builder.h"

namespace sinter::runtime {
namespace {

using fake::at;
using fake::PlanBuilder;
using Buffers = std::vector<BufferId>;

struct Layout : testing::Test {
  PlanBuilder b{Backend::cuda};
  BufferId x = b.add(BufferKind::input, 8, 0);
  uint32_t kernel = b.add_kernel(eight_points());

  static KernelSource eight_points() {
    KernelSource source;
    source.name = "k";
    source.numel = 8;
    return source;
  }
};

TEST_F(Layout, repoints_what_kernels_alone_touch) {
  const BufferId y = b.add(BufferKind::output, 8);
  b.step(Allocate{y});
  b.launch(kernel, {at(x), at(y)});
  b.plan.outputs = {y};
  const GraphLayout layout = lay_out_graph(b.plan);
  EXPECT_EQ(layout.refusal, "");
  EXPECT_EQ(layout.moving_inputs, Buffers{x});
  EXPECT_EQ(layout.moving_outputs, Buffers{y});
  EXPECT_TRUE(layout.copied_inputs.empty());
  EXPECT_TRUE(layout.copied_outputs.empty());
}

TEST_F(Layout, copies_an_input_that_a_call_reads_through_a_view) {
  const BufferId view = b.add(BufferKind::view, 4, 0, 4, x);
  const BufferId y = b.add(BufferKind::result, 4);
  b.step(Bind{view});
  b.step(RunCall{b.add_call("aten::mm", {view}, {y})});
  b.plan.outputs = {y};
  const GraphLayout layout = lay_out_graph(b.plan);
  EXPECT_EQ(layout.copied_inputs, Buffers{x});
  EXPECT_TRUE(layout.moving_inputs.empty());
  EXPECT_EQ(layout.copied_outputs, Buffers{y});
}

TEST_F(Layout, takes_an_input_in_place_that_stays) {
  const BufferId w = b.add(BufferKind::input, 8, 1);
  const BufferId y = b.add(BufferKind::result, 8);
  b.step(RunCall{b.add_call("aten::mm", {x, w}, {y})});
  b.launch(kernel, {at(w), at(y)});
  b.plan.outputs = {y};
  const GraphLayout layout = lay_out_graph(b.plan, Buffers{w});
  EXPECT_EQ(layout.copied_inputs, Buffers{x});
  EXPECT_TRUE(layout.moving_inputs.empty());
}

TEST_F(Layout, refuses_to_copy_what_has_gaps_and_is_written) {
  ir::Type type = ir::contiguous(ir::DType::f32, {8}, b.plan.device);
  type.strides = {2};
  const BufferId cache = b.add_typed(BufferKind::input, type, 1);
  b.step(RunCall{b.add_call("aten::zero_", {cache}, {})});
  b.plan.written = {cache};
  EXPECT_EQ(lay_out_graph(b.plan).refusal, "a library call writes input 1, which has gaps");
  EXPECT_EQ(lay_out_graph(b.plan, Buffers{cache}).refusal, "") << "where it stays it need not be copied";
}

TEST_F(Layout, refuses_a_call_that_may_do_more_than_launch_kernels) {
  const BufferId y = b.add(BufferKind::result, 8);
  const uint32_t call = b.add_call("mine::count", {x}, {y});
  b.plan.calls[call].impure = true;
  b.step(RunCall{call});
  b.plan.outputs = {y};
  EXPECT_TRUE(lay_out_graph(b.plan).refusal.starts_with("mine::count may do more")) << lay_out_graph(b.plan).refusal;
}

TEST_F(Layout, copies_an_output_that_a_call_reads) {
  const BufferId h = b.add(BufferKind::output, 8);
  const BufferId y = b.add(BufferKind::result, 8);
  b.step(Allocate{h});
  b.launch(kernel, {at(x), at(h)});
  b.step(RunCall{b.add_call("aten::mm", {h}, {y})});
  b.plan.outputs = {h, y};
  const GraphLayout layout = lay_out_graph(b.plan);
  EXPECT_EQ(layout.copied_outputs, (Buffers{h, y}));
  EXPECT_TRUE(layout.moving_outputs.empty());
}

TEST_F(Layout, copies_the_memory_an_in_place_output_took_over_and_binds_it) {
  const BufferId r = b.add(BufferKind::result, 8);
  const BufferId y = b.add(BufferKind::in_place, 8, 0, 0, r);
  b.step(RunCall{b.add_call("aten::mm", {x}, {r})});
  b.step(Bind{y});
  b.launch(kernel, {at(r), at(y)});
  b.plan.outputs = {y};
  const GraphLayout layout = lay_out_graph(b.plan);
  EXPECT_EQ(layout.copied_outputs, Buffers{r});
  EXPECT_EQ(layout.output_binds, Buffers{y});
}

TEST_F(Layout, binds_a_view_of_an_input_for_the_caller_only) {
  const BufferId half = b.add(BufferKind::view, 4, 0, 4, x);
  const BufferId quarter = b.add(BufferKind::view, 2, 0, 2, half);
  b.plan.outputs = {quarter, half};
  const GraphLayout layout = lay_out_graph(b.plan);
  EXPECT_EQ(layout.output_binds, (Buffers{half, quarter}));
  EXPECT_TRUE(layout.copied_inputs.empty());
  EXPECT_TRUE(layout.moving_inputs.empty());
}

TEST_F(Layout, says_when_calls_draw_random_numbers) {
  const uint32_t call = b.add_call("aten::bernoulli", {x}, {b.add(BufferKind::result, 8)});
  b.plan.calls[call].random = true;
  b.step(RunCall{call});
  EXPECT_EQ(lay_out_graph(b.plan).refusal, "");
  EXPECT_TRUE(lay_out_graph(b.plan).draws);
  b.plan.calls[call].random = false;
  EXPECT_FALSE(lay_out_graph(b.plan).draws);
}

TEST_F(Layout, refuses_calls_that_read_a_cpu_tensor_that_may_change) {
  const BufferId s = b.add_scalar(BufferKind::input, ir::DType::f32, 1);
  b.step(RunCall{b.add_call("aten::mul", {x, s}, {b.add(BufferKind::result, 8)})});
  EXPECT_EQ(lay_out_graph(b.plan).refusal, "aten::mul reads a tensor on cpu");
}

TEST_F(Layout, allows_host_scalars_of_kernels) {
  const BufferId s = b.add_scalar(BufferKind::input, ir::DType::f32, 1);
  const BufferId y = b.add(BufferKind::output, 8);
  b.step(Allocate{y});
  b.launch(kernel, {at(x), fake::f64(s), at(y)});
  b.plan.outputs = {y};
  EXPECT_EQ(lay_out_graph(b.plan).refusal, "");
}

TEST_F(Layout, refuses_calls_that_make_a_cpu_tensor) {
  const BufferId r = b.add_typed(BufferKind::result, ir::contiguous(ir::DType::f32, {8}, {}));
  b.step(RunCall{b.add_call("aten::_to_copy", {x}, {r})});
  EXPECT_EQ(lay_out_graph(b.plan).refusal, "aten::_to_copy makes a tensor on cpu");
}

TEST_F(Layout, lets_attention_say_what_it_drew_on_either_device) {
  const ir::Type number = ir::contiguous(ir::DType::i64, {}, ir::Device{});
  const BufferId y = b.add(BufferKind::result, 8), gradient = b.add(BufferKind::result, 8);
  const BufferId seed = b.add_typed(BufferKind::result, number, 0);
  const uint32_t forward =
      b.add_call("aten::_scaled_dot_product_efficient_attention", {x}, {y, BufferId{}, seed, BufferId{}});
  b.step(RunCall{forward});
  b.step(RunCall{b.add_call("aten::_scaled_dot_product_efficient_attention_backward", {x, seed}, {gradient})});
  b.plan.outputs = {gradient};
  EXPECT_EQ(lay_out_graph(b.plan).refusal, "");
  b.plan.outputs = {gradient, seed};
  EXPECT_EQ(lay_out_graph(b.plan).refusal, "");
  EXPECT_EQ(lay_out_graph(b.plan).blank_outputs, Buffers{seed});
  b.plan.calls[forward].random = true;
  EXPECT_TRUE(lay_out_graph(b.plan).refusal.ends_with("cannot be copied")) << "a number of the host's is asked for";
}

/// y = a large product of h, which a kernel makes of x.
struct ClosingLayout : Layout {
  BufferId h = b.add(BufferKind::output, 8);
  BufferId y = b.add(BufferKind::result, least_closing_bytes / 4);
  const std::vector<uint32_t> none;

  void make_h() {
    b.step(Allocate{h});
    b.launch(kernel, {at(x), at(h)});
  }
  uint32_t multiply(BufferId operand, BufferId result) {
    const uint32_t call = b.add_call("aten::mm", {operand}, {result});
    b.step(RunCall{call});
    return call;
  }
};

TEST_F(ClosingLayout, leaves_a_last_call_of_a_large_result_out_of_the_graph) {
  make_h();
  const uint32_t call = multiply(h, y);
  const BufferId rows = b.add(BufferKind::view, 8, 0, 0, y);
  b.step(Release{h});
  b.step(Bind{rows});
  b.plan.outputs = {rows};
  const GraphLayout layout = lay_out_graph(b.plan);
  EXPECT_EQ(layout.closing.calls, std::vector<uint32_t>{call});
  EXPECT_EQ(layout.lent, Buffers{h});
  EXPECT_TRUE(layout.copied_outputs.empty());
  EXPECT_EQ(layout.output_binds, Buffers{rows});
}

TEST_F(ClosingLayout, gives_it_what_is_an_output_as_well_where_the_caller_gets_that) {
  make_h();
  multiply(h, y);
  b.plan.outputs = {h, y};
  const GraphLayout layout = lay_out_graph(b.plan);
  EXPECT_EQ(layout.moving_outputs, Buffers{h});
  EXPECT_TRUE(layout.lent.empty());
  EXPECT_TRUE(layout.copied_outputs.empty());
}

TEST_F(ClosingLayout, copies_no_input_that_it_alone_reads) {
  const BufferId w = b.add(BufferKind::input, 8, 1);
  const BufferId turned = b.add(BufferKind::view, 8, 0, 0, w);
  make_h();
  b.step(Bind{turned});
  b.step(RunCall{b.add_call("aten::mm", {h, turned}, {y})});
  b.plan.outputs = {y};
  const GraphLayout layout = lay_out_graph(b.plan);
  EXPECT_EQ(layout.lent, Buffers{h});
  EXPECT_EQ(layout.closing_binds, Buffers{turned});
  EXPECT_TRUE(layout.copied_inputs.empty());
}

TEST_F(ClosingLayout, keeps_the_last_call_in_the_graph_where_it_is_all_the_work) {
  multiply(x, y);
  b.plan.outputs = {y};
  EXPECT_EQ(closing_calls(b.plan).calls, none);
}

TEST_F(ClosingLayout, keeps_calls_in_the_graph_that_others_follow_or_that_give_little) {
  make_h();
  multiply(h, y);
  const BufferId small = b.add(BufferKind::result, 8);
  multiply(h, small);
  b.plan.outputs = {y, small};
  EXPECT_EQ(closing_calls(b.plan).calls, none);
}

TEST_F(ClosingLayout, keeps_operators_in_the_graph_that_are_not_libtorchs) {
  make_h();
  b.step(RunCall{b.add_call("mine::mm", {h}, {y})});
  b.plan.outputs = {y};
  EXPECT_EQ(closing_calls(b.plan).calls, none);
}

TEST_F(ClosingLayout, keeps_calls_in_the_graph_that_draw_or_follow_writes) {
  make_h();
  const uint32_t call = multiply(h, y);
  b.plan.outputs = {y};
  b.plan.calls[call].random = true;
  EXPECT_EQ(closing_calls(b.plan).calls, none);
  b.plan.calls[call].random = false;
  EXPECT_EQ(closing_calls(b.plan).calls, std::vector<uint32_t>{call});
  b.plan.written = {x};
  EXPECT_EQ(closing_calls(b.plan).calls, none);
}

}  // namespace
}  // namespace sinter::runtime
