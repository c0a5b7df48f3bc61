#include "small_models.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros_like.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

namespace sinter::test {
namespace {

constexpr int64_t width = 32;

int residual_at = 0;
int drop_at = 0;

struct BlockImpl : torch::nn::Module {
  BlockImpl() {
    norm = register_module("norm", torch::nn::Linear(width, 4 * width));
    act = register_module("act", torch::nn::GELU());
    out = register_module("out", torch::nn::Linear(4 * width, width));
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor inner = out->forward(act->forward(norm->forward(at::relu(x))));
    residual_at = __LINE__ + 1;
    return x + inner;
  }
  torch::nn::Linear norm{nullptr};
  torch::nn::GELU act{nullptr};
  torch::nn::Linear out{nullptr};
};
TORCH_MODULE(Block);

/// Gathers half of the columns, twice: it has no parameters.
struct DropImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor index = at::arange(x.size(1), x.options().dtype(at::kLong)).div(2, "floor").expand(x.sizes());
    drop_at = __LINE__ + 1;
    return x.gather(1, index);
  }
};
TORCH_MODULE(Drop);

struct SmallNetImpl : torch::nn::Module {
  SmallNetImpl() {
    drop = register_module("drop", Drop());
    for (int i = 0; i < 3; ++i) blocks->push_back("block" + std::to_string(i), Block());
    register_module("blocks", blocks);
    head = register_module("head", torch::nn::Linear(width, width));
  }
  at::Tensor forward(const at::Tensor& x) { return head->forward(blocks->forward(drop->forward(x))); }
  Drop drop{nullptr};
  torch::nn::Sequential blocks;
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(SmallNet);

std::string line(int number) { return "small_models.cpp:" + std::to_string(number); }

}  // namespace

SmallProgram training_step(at::Device device) {
  SmallNet net;
  net->to(device);
  const auto optimizer =
      std::make_shared<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(1e-3).momentum(0.9));
  (void)net->forward(at::zeros({2, width}, device));  // which notes the lines
  SmallProgram program{.module = net.ptr(), .step = {}, .residual_line = line(residual_at), .drop_line = line(drop_at)};
  program.step = [net, optimizer](const at::Tensor& x) mutable {
    optimizer->zero_grad();
    const at::Tensor y = net->forward(x);
    at::mse_loss(y, at::zeros_like(y)).backward();
    optimizer->step();
  };
  return program;
}

std::vector<std::string> small_paths() {
  std::vector<std::string> paths{"", "drop", "blocks"};
  for (const char* block : {"block0", "block1", "block2"}) {
    const std::string path = std::string("blocks.") + block;
    paths.push_back(path);
    for (const char* part : {".norm", ".act", ".out"}) paths.push_back(path + part);
  }
  paths.emplace_back("head");
  return paths;
}

Profile profile_of(const SmallProgram& program, const at::Tensor& x, ProfileOptions options) {
  options.modules = {{"", program.module}};
  return sinter::profile(program.step, std::move(options))(x);
}

}  // namespace sinter::test
