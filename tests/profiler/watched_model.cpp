#include "watched_model.h"

#include <ATen/ops/bmm.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros_like.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/sgd.h>

#include <mutex>
#include <unordered_set>

namespace sinter::test {
namespace {

using torch::autograd::Node;
using torch::autograd::variable_list;

constexpr int64_t token_width = 32;

/// Of the thread that runs: autograd's own has hooks alone.
thread_local std::string current = "-";

struct Enter : torch::autograd::FunctionPreHook {
  explicit Enter(std::string where) : path(std::move(where)) {}
  variable_list operator()(const variable_list& gradients) override {
    current = path;
    return gradients;
  }
  std::string path;
};

struct Leave : torch::autograd::FunctionPostHook {
  variable_list operator()(const variable_list& outputs, const variable_list&) override {
    current = "-";
    return outputs;
  }
};

/// Nodes that have hooks. Held, so that no address is given out again.
class Hooks {
 public:
  void clear() { known_.clear(); }

  /// Puts hooks on the nodes that nobody has claimed, from this one towards the inputs.
  void claim(const std::shared_ptr<Node>& node, const std::string& path) {
    if (node == nullptr || !known_.insert(node).second) return;
    node->add_pre_hook(std::make_unique<Enter>(path));
    node->add_post_hook(std::make_unique<Leave>());
    for (const torch::autograd::Edge& edge : node->next_edges()) claim(edge.function, path);
  }

 private:
  std::unordered_set<std::shared_ptr<Node>> known_;
};

Hooks& hooks() {
  static Hooks all;
  return all;
}

/// Calls a module's forward on its input. What led to the input and nobody has claimed is the outer module's.
template <class Forward>
at::Tensor watched(const std::string& path, const at::Tensor& input, Forward forward) {
  hooks().claim(input.grad_fn(), current);
  const std::string outer = std::exchange(current, path);
  at::Tensor result = forward(input);
  hooks().claim(result.grad_fn(), path);
  current = outer;
  return result;
}

struct WatchedBlockImpl : torch::nn::Module {
  explicit WatchedBlockImpl(std::string where) : path(std::move(where)) {
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({token_width})));
    qkv = register_module("qkv", torch::nn::Linear(token_width, 3 * token_width));
    inner = register_module("inner", torch::nn::Linear(token_width, 4 * token_width));
    act = register_module("act", torch::nn::GELU());
    outer = register_module("outer", torch::nn::Linear(4 * token_width, token_width));
  }

  at::Tensor forward(const at::Tensor& input) {
    return watched(path, input, [&](const at::Tensor& x) {
      const auto parts = call("qkv", qkv, call("norm", norm, x)).chunk(3, -1);
      const at::Tensor weights = at::softmax(at::bmm(parts[0], parts[1].transpose(1, 2)), -1);
      const at::Tensor mixed = at::bmm(weights, parts[2]);
      return x + call("outer", outer, call("act", act, call("inner", inner, mixed)));
    });
  }

  template <class Part>
  at::Tensor call(const char* name, Part& part, const at::Tensor& input) {
    return watched(path + "." + name, input, [&](const at::Tensor& x) { return part->forward(x); });
  }

  std::string path;
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear qkv{nullptr}, inner{nullptr}, outer{nullptr};
  torch::nn::GELU act{nullptr};
};
TORCH_MODULE(WatchedBlock);

struct WatchedNetImpl : torch::nn::Module {
  WatchedNetImpl() {
    embed = register_module("embed", torch::nn::Linear(token_width, token_width));
    for (const char* name : {"first", "second"}) {
      blocks.push_back(register_module(name, WatchedBlock(std::string(name))));
    }
    head = register_module("head", torch::nn::Linear(token_width, token_width));
  }

  at::Tensor forward(const at::Tensor& input) {
    at::Tensor y = watched("embed", input, [&](const at::Tensor& x) { return embed->forward(x); });
    for (WatchedBlock& block : blocks) y = block->forward(y);
    return watched("head", y, [&](const at::Tensor& x) { return head->forward(x); });
  }

  torch::nn::Linear embed{nullptr}, head{nullptr};
  std::vector<WatchedBlock> blocks;
};
TORCH_MODULE(WatchedNet);

std::mutex seen_mutex;
std::vector<WatchedOperator> seen;

std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& function) {
  const std::lock_guard lock(seen_mutex);
  seen.push_back({function.name(), current});
  return nullptr;
}

}  // namespace

struct WatchedStep::Impl {
  explicit Impl(at::Device device) {
    net->to(device);
    optimizer = std::make_unique<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(1e-3));
    watch = at::addGlobalCallback(at::RecordFunctionCallback(note).scopes({at::RecordScope::FUNCTION}));
  }

  WatchedNet net;
  std::unique_ptr<torch::optim::SGD> optimizer;
  at::CallbackHandle watch = 0;
};

WatchedStep::WatchedStep(at::Device device) : impl_(std::make_unique<Impl>(device)) {}

WatchedStep::~WatchedStep() {
  at::removeCallback(impl_->watch);
  hooks().clear();
}

void WatchedStep::operator()(const at::Tensor& x) {
  hooks().clear();
  {
    const std::lock_guard lock(seen_mutex);
    seen.clear();
  }
  impl_->optimizer->zero_grad();
  const at::Tensor y = impl_->net->forward(x);
  at::mse_loss(y, at::zeros_like(y)).backward();
  impl_->optimizer->step();
}

std::shared_ptr<torch::nn::Module> WatchedStep::module() const { return impl_->net.ptr(); }

std::vector<WatchedOperator> WatchedStep::operators() const {
  const std::lock_guard lock(seen_mutex);
  return seen;
}

}  // namespace sinter::test
