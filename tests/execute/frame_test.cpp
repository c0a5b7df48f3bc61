// The tensors of a call, as the runtime asks for them.
#include "frontend/execute/frame_torch.h"

#include <ATen/ops/matmul.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "compiler/plan.h"

namespace sinter::test {
namespace {

using frontend::FrameLayout;
using frontend::TorchFrame;

struct Frames : ::testing::Test {
  Plan plan;

  Frames() { plan.name = "frames"; }

  BufferId add(BufferKind kind, ir::Type type) {
    Buffer buffer;
    buffer.kind = kind;
    buffer.type = std::move(type);
    plan.buffers.push_back(std::move(buffer));
    return BufferId{static_cast<uint32_t>(plan.buffers.size() - 1)};
  }
};

TEST_F(Frames, see_memory_that_is_lent_in_the_order_of_the_plan) {
  ir::Type turned = ir::contiguous(ir::DType::f32, {3, 4}, ir::Device{});
  turned.strides = {1, 3};
  const BufferId a = add(BufferKind::arena, ir::contiguous(ir::DType::f32, {2, 3}, ir::Device{}));
  const BufferId b = add(BufferKind::result, turned);
  const BufferId product = add(BufferKind::result, ir::contiguous(ir::DType::f32, {2, 4}, ir::Device{}));
  ExternCall call;
  call.op = "aten::mm";
  call.args = {{ir::ValueId{a.index}}, {ir::ValueId{b.index}}};
  call.results = {product};
  plan.calls.push_back(std::move(call));
  TorchFrame frame(std::make_shared<const FrameLayout>(std::make_shared<const Plan>(plan), std::vector<c10::IValue>()));
  const at::Tensor left = at::rand({2, 3}), right = at::rand({4, 3});
  frame.lend(a, left.data_ptr());
  frame.lend(b, right.data_ptr());
  frame.call(0);
  EXPECT_TRUE(frame.tensor(product).equal(at::matmul(left, right.t())));
  EXPECT_EQ(frame.data(a), left.data_ptr());
  frame.release(a);
  EXPECT_TRUE(left.defined()) << "its owner keeps it";
}

}  // namespace
}  // namespace sinter::test
