#include "tests/capture/capture_test.h"

namespace capture_test {
namespace {

namespace nn = torch::nn;

struct BlockImpl : nn::Module {
  BlockImpl() {
    conv1 = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(4, 4, 3).padding(1).bias(false)));
    bn1 = register_module("bn1", nn::BatchNorm2d(4));
  }
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = bn1(conv1(x));
    y.relu_();
    y += x;
    return y.relu_();
  }
  nn::Conv2d conv1{nullptr};
  nn::BatchNorm2d bn1{nullptr};
};
TORCH_MODULE(Block);

struct NetImpl : nn::Module {
  NetImpl() {
    layer = register_module("layer", nn::Sequential(Block(), Block()));
    fc = register_module("fc", nn::Linear(4 * 4 * 4, 5));
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = torch::max_pool2d(layer->forward(x), 2);
    return fc(y.flatten(1));
  }
  nn::Sequential layer;
  nn::Linear fc{nullptr};
};
TORCH_MODULE(Net);

struct Captured {
  Trace trace;
  std::vector<at::Tensor> outputs;
};

Captured capture_net(Net& net, const at::Tensor& x) {
  Captured captured;
  captured.trace = capture([&] { return std::vector<at::Tensor>{net->forward(x)}; }, std::vector<at::Tensor>{x},
                           names_of(*net), &captured.outputs);
  return captured;
}

class Models : public testing::Test {
 protected:
  Models() { net->eval(); }
  torch::NoGradGuard no_grad;
  Net net;
  at::Tensor x = torch::randn({2, 4, 8, 8});
};

TEST_F(Models, a_captured_run_returns_what_eager_returns) {
  const Captured captured = capture_net(net, x);
  ASSERT_TRUE(whole(captured.trace));
  EXPECT_TRUE(torch::equal(captured.outputs[0], net->forward(x)));
}

TEST_F(Models, a_residual_network_is_recorded_call_by_call) {
  const Trace trace = capture_net(net, x).trace;
  const Ops block{"convolution", "empty.memory_format", "native_batch_norm", "relu_", "add_.Tensor", "relu_"};
  Ops wanted = block;
  wanted.insert(wanted.end(), block.begin(), block.end());
  wanted.insert(wanted.end(), {"max_pool2d_with_indices", "view", "t", "addmm"});
  EXPECT_EQ(ops_of(trace), wanted);
}

TEST_F(Models, parameters_and_buffers_become_state_under_their_names) {
  const Trace trace = capture_net(net, x).trace;
  ASSERT_EQ(trace.states.size(), 12);
  EXPECT_EQ(trace.states[0].name, "layer.0.conv1.weight");
  EXPECT_EQ(trace.states[3].name, "layer.0.bn1.running_mean");
  EXPECT_EQ(trace.states[0].tensor.lock().get(), net->parameters()[0].unsafeGetTensorImpl());
  EXPECT_TRUE(trace.contents.empty());
}

TEST_F(Models, operators_with_parameters_carry_their_module_and_all_carry_their_place) {
  const Trace trace = capture_net(net, x).trace;
  EXPECT_TRUE(shows(trace, "# layer.1.bn1  models_test.cpp:"));
  EXPECT_TRUE(shows(trace, "# fc  models_test.cpp:"));
  EXPECT_TRUE(shows(trace, "alias %native_batch_norm + 0  #   models_test.cpp:"));
}

TEST_F(Models, writes_in_place_are_aliases_of_the_first_value_of_their_storage) {
  const Trace trace = capture_net(net, x).trace;
  EXPECT_TRUE(shows(trace,
                    "%relu = call aten.relu_(%native_batch_norm) mutates(0) functional aten.relu : "
                    "f32[2,4,8,8] alias %native_batch_norm + 0"));
  EXPECT_TRUE(shows(trace, "%add = call aten.add_.Tensor(%relu, %x0, 1) mutates(0) functional aten.add.Tensor"));
}

TEST_F(Models, every_mode_without_gradients_records_the_same_calls) {
  const Ops wanted = ops_of(capture_net(net, x).trace);
  {
    const c10::InferenceMode inference;
    EXPECT_EQ(ops_of(capture_net(net, x).trace), wanted);
  }
  for (auto& parameter : net->parameters()) parameter.set_requires_grad(false);
  const torch::AutoGradMode with_grad(true);
  const Trace trace = capture_net(net, x).trace;
  ASSERT_TRUE(whole(trace));
  EXPECT_EQ(ops_of(trace), wanted);
}

TEST_F(Models, two_captures_of_one_model_are_equal) {
  const Trace first = capture_net(net, x).trace;
  const Trace second = capture_net(net, x).trace;
  EXPECT_EQ(difference(first, second), std::nullopt);
}

TEST_F(Models, a_replaced_parameter_is_a_difference) {
  const Trace first = capture_net(net, x).trace;
  const auto kept = net->fc->bias;
  net->fc->bias = torch::zeros({5});
  const Trace second = capture_net(net, x).trace;
  ASSERT_TRUE(difference(first, second));
}

TEST_F(Models, a_result_that_requires_gradients_is_a_break) {
  const torch::AutoGradMode with_grad(true);
  const Captured captured = capture_net(net, x);
  EXPECT_TRUE(breaks(captured.trace, BreakCode::needs_gradient, "", "a result requires gradients"));
  EXPECT_TRUE(captured.outputs[0].requires_grad());
}

TEST_F(Models, training_batch_norm_writes_its_statistics) {
  net->train();
  const Trace trace = capture_net(net, x).trace;
  ASSERT_TRUE(whole(trace));
  EXPECT_TRUE(shows(trace, "mutates(3, 4)"));
}

TEST_F(Models, autocast_casts_are_recorded_every_time) {
  const auto run = [&] {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    Trace trace = capture_net(net, x).trace;
    at::autocast::set_autocast_enabled(at::kCPU, false);
    return trace;
  };
  const Trace first = run();
  const Trace second = run();
  EXPECT_TRUE(shows(first, "aten._to_copy(%layer.0.conv1.weight, dtype(bf16)"));
  EXPECT_TRUE(at::autocast::is_autocast_cache_enabled());
  EXPECT_EQ(difference(first, second), std::nullopt);
}

}  // namespace
}  // namespace capture_test
