#include "tests/capture/capture_test.h"

namespace sinter::frontend::test {
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

TEST(Models, a_residual_network_is_recorded_with_names_aliases_and_writes) {
  Net net;
  net->eval();
  const at::Tensor x = torch::randn({2, 4, 8, 8});
  const torch::NoGradGuard no_grad;
  std::vector<at::Tensor> outputs;
  const Trace trace = capture([&] { return std::vector<at::Tensor>{net->forward(x)}; }, std::vector<at::Tensor>{x},
                              names_of(*net), &outputs);
  ASSERT_FALSE(trace.graph_break) << trace.graph_break->op << trace.graph_break->reason;
  EXPECT_TRUE(torch::equal(outputs[0], net->forward(x)));
  EXPECT_SHOWS(trace, "\"layer.0.conv1.weight\"");
  std::cout << text_of(trace) << trace.seconds << "\n";
}

}  // namespace
}  // namespace sinter::frontend::test
