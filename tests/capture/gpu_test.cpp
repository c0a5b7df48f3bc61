#include "tests/capture/capture_test.h"

namespace capture_test {
namespace {

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no CUDA device";
    x = torch::randn({2, 4, 8, 8}, at::kCUDA);
  }
  at::Tensor x;
};

TEST_F(Gpu, operators_are_recorded_on_their_device) {
  const at::Tensor w = torch::randn({4, 4, 3, 3}, at::kCUDA);
  const at::Tensor one = torch::ones({4}, at::kCUDA);
  const Trace trace = trace_of(
      [&](const at::Tensor& v) {
        const at::Tensor y = torch::conv2d(v, w, {}, 1, 1);
        return torch::batch_norm(y, one, one, one, one, false, 0.1, 1e-5, true).relu_();
      },
      x);
  ASSERT_TRUE(whole(trace));
  EXPECT_TRUE(shows(trace, "on cuda:0 (%x0: f32[2,4,8,8])"));
  EXPECT_EQ(ops_of(trace).back(), "relu_");
  EXPECT_EQ(trace.states.size(), 2);
}

TEST_F(Gpu, attention_in_half_is_recorded_whole) {
  const at::Tensor q = torch::randn({1, 2, 64, 64}, at::dtype(at::kHalf).device(at::kCUDA));
  const Trace trace = trace_of([](const at::Tensor& v) { return at::scaled_dot_product_attention(v, v, v); }, q);
  EXPECT_TRUE(whole(trace));
}

TEST_F(Gpu, copies_to_the_host_read_the_host) {
  const Trace copy = trace_of([](const at::Tensor& v) { return v.cpu() + 1; }, x);
  ASSERT_TRUE(whole(copy));
  EXPECT_TRUE(shows(copy, "read : f32[2,4,8,8]"));
  EXPECT_TRUE(breaks(trace_of([](const at::Tensor& v) { return v.cpu(), v + 1; }, x), BreakCode::host_read,
                     "aten::_to_copy", "no operator and no result"));
  at::Tensor host = torch::empty({2, 4, 8, 8});
  const Trace trace = trace_of([&](const at::Tensor& v) { return host.copy_(v), v + 1; }, x);
  ASSERT_TRUE(trace.graph_break);
  const Trace item = trace_of([](const at::Tensor& v) { return v * v.sum().item<float>(); }, x);
  EXPECT_TRUE(whole(item));
  EXPECT_EQ(item.reads.size(), 1);
}

TEST_F(Gpu, copies_to_the_device_are_recorded_with_their_content) {
  const Trace trace = trace_of(
      [](const at::Tensor& v) { return v * torch::tensor(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, v.options()); },
      x);
  ASSERT_TRUE(whole(trace));
  EXPECT_EQ(trace.contents.size(), 1);
  EXPECT_TRUE(shows(trace, "= content 0 : f32[8]@cpu"));
}

TEST_F(Gpu, device_memory_from_nowhere_that_dies_is_a_break) {
  const at::Tensor owner = torch::randn({8}, at::kCUDA);
  const Trace trace =
      trace_of([&](const at::Tensor& v) { return v * torch::from_blob(owner.data_ptr(), {8}, v.options()); }, x);
  EXPECT_TRUE(breaks(trace, BreakCode::unsupported_op, "", "from_blob"));
}

TEST_F(Gpu, autocast_to_half_is_recorded) {
  const at::Tensor w = torch::randn({8, 8}, at::kCUDA);
  at::autocast::set_autocast_enabled(at::kCUDA, true);
  const Trace trace = trace_of([&](const at::Tensor& v) { return torch::matmul(v, w); }, x);
  at::autocast::set_autocast_enabled(at::kCUDA, false);
  ASSERT_TRUE(whole(trace));
  EXPECT_TRUE(shows(trace, "dtype(f16)"));
}

}  // namespace
}  // namespace capture_test
