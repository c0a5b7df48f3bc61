#include <ATen/core/dispatch/Dispatcher.h>

#include "frontend/torch/convert.h"
#include "tests/capture/capture_test.h"

namespace capture_test {
namespace {

using Function = std::function<at::Tensor(const at::Tensor&)>;

/// Runs a captured graph call by call through the dispatcher, writes and aliases included.
class Replay {
 public:
  Replay(const Trace& trace, const at::Tensor& input) : trace_(trace), values_(trace.graph.value_count()) {
    for (const ir::NodeId id : trace.graph.order()) run(trace.graph.node(id), input);
  }
  [[nodiscard]] at::Tensor output() const { return values_[trace_.graph.outputs[0].index]; }

 private:
  void run(const ir::Node& node, const at::Tensor& input) {
    if (const auto* call = node.as<ir::Call>()) return run_call(node, *call);
    at::Tensor& value = values_[node.results[0].index];
    if (node.as<ir::Input>()) value = input;
    if (const auto* state = node.as<ir::State>()) value = at::Tensor(trace_.states[state->index].tensor.lock());
    if (const auto* content = node.as<ir::Constant>()) value = trace_.contents[content->index].value;
  }

  void run_call(const ir::Node& node, const ir::Call& call) {
    const size_t dot = call.op.find('.');
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(
        call.op.substr(0, dot).c_str(), dot == std::string::npos ? "" : call.op.substr(dot + 1).c_str());
    std::vector<c10::IValue> stack;
    for (size_t i = 0; i < node.args.size(); ++i) {
      stack.push_back(ivalue_of(
          node.args[i], *op.schema().arguments()[i].real_type(),
          [&](ir::ValueId value) { return values_[value.index]; }, trace_.opaques));
    }
    op.callBoxed(stack);
    const std::vector<at::Tensor> results = tensors_of(stack);
    ASSERT_EQ(results.size(), node.results.size()) << call.op;
    for (size_t i = 0; i < results.size(); ++i) {
      values_[node.results[i].index] = results[i];
      const ir::Type& type = trace_.graph.type(node.results[i]);
      EXPECT_EQ(results[i].sizes().vec(), type.static_sizes()) << call.op;
      EXPECT_EQ(results[i].strides().vec(), type.static_strides()) << call.op;
    }
  }

  const Trace& trace_;
  std::vector<at::Tensor> values_;
};

struct Case {
  std::string name;
  Function function;
  std::vector<int64_t> sizes;
};

at::Tensor fixed(at::IntArrayRef sizes) {
  auto generator = at::detail::createCPUGenerator(3);
  return torch::randn(sizes, generator);
}

/// Tensors the programs close over; they outlive every trace.
const at::Tensor& weight() {
  static const at::Tensor w = fixed({6, 6});
  return w;
}
const at::Tensor& index() {
  static const at::Tensor i = torch::tensor(std::vector<int64_t>{3, 0, 2, 1});
  return i;
}

std::vector<Case> cases() {
  namespace F = torch::nn::functional;
  using at::Tensor;
  // Made before any trace, not inside the first one.
  (void)weight();
  (void)index();
  return {
      {"gelu", [](const Tensor& x) { return torch::gelu(x) + at::gelu(x, "tanh"); }, {4, 6}},
      {"softmax", [](const Tensor& x) { return torch::softmax(x, -1).log() + torch::log_softmax(x, 0); }, {4, 6}},
      {"linear", [](const Tensor& x) { return torch::linear(x, weight()); }, {2, 4, 6}},
      {"einsum", [](const Tensor& x) { return torch::einsum("bij,jk->bik", {x, weight()}); }, {2, 4, 6}},
      {"bmm", [](const Tensor& x) { return torch::baddbmm(x, x, weight().expand({2, 6, 6}), 2, 0.5); }, {2, 6, 6}},
      {"norms", [](const Tensor& x) { return torch::layer_norm(x, {6}) + torch::group_norm(x, 2); }, {2, 4, 6}},
      {"instance_norm",
       [](const Tensor& x) { return torch::instance_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5, false); },
       {2, 4, 6}},
      {"attention",
       [](const Tensor& x) { return at::scaled_dot_product_attention(x, x, x, {}, 0.0, true); },
       {1, 2, 8, 16}},
      {"attention_mask",
       [](const Tensor& x) {
         return at::scaled_dot_product_attention(x, x, x, torch::ones({8, 8}).tril().to(at::kBool));
       },
       {1, 2, 8, 16}},
      {"conv1d", [](const Tensor& x) { return torch::conv1d(x, weight().view({6, 6, 1})); }, {1, 6, 9}},
      {"conv_transpose",
       [](const Tensor& x) { return torch::conv_transpose2d(x, weight().view({6, 6, 1, 1}), {}, 2); },
       {1, 6, 4, 4}},
      {"pools",
       [](const Tensor& x) {
         return torch::avg_pool2d(x, 2) + torch::max_pool2d(x, 2) + torch::adaptive_avg_pool2d(x, {2, 2});
       },
       {1, 3, 4, 4}},
      {"channels_last",
       [](const Tensor& x) {
         return torch::conv2d(x.contiguous(at::MemoryFormat::ChannelsLast), weight().view({6, 6, 1, 1}));
       },
       {1, 6, 4, 4}},
      {"pad",
       [](const Tensor& x) { return at::constant_pad_nd(x, {1, 2}, 0.5) + at::reflection_pad1d(x, {1, 2}); },
       {4, 6}},
      {"interpolate",
       [](const Tensor& x) {
         return F::interpolate(
             x, F::InterpolateFuncOptions().scale_factor(std::vector<double>{2, 2}).mode(torch::kBilinear));
       },
       {1, 2, 3, 3}},
      {"embedding", [](const Tensor& x) { return torch::embedding(weight(), index()) * x; }, {4, 6}},
      {"gather", [](const Tensor& x) { return x.gather(0, index().unsqueeze(1).expand({4, 6})); }, {4, 6}},
      {"index", [](const Tensor& x) { return x.index({index(), torch::indexing::Slice(1, 4)}); }, {4, 6}},
      {"index_put", [](const Tensor& x) { return x.index_put({index()}, x * 2); }, {4, 6}},
      {"scatter_add",
       [](const Tensor& x) { return torch::zeros({4, 6}).scatter_add_(0, index().unsqueeze(1).expand({4, 6}), x); },
       {4, 6}},
      {"topk", [](const Tensor& x) { return std::get<0>(x.topk(3)) + std::get<0>(x.sort(1)).narrow(1, 0, 3); }, {4, 6}},
      {"argmax", [](const Tensor& x) { return x.argmax(1).to(at::kFloat) + std::get<0>(x.max(1)); }, {4, 6}},
      {"cumsum", [](const Tensor& x) { return x.cumsum(1) + x.flip(0).cumprod(0); }, {4, 6}},
      {"statistics",
       [](const Tensor& x) { return std::get<0>(torch::var_mean(x, 1)) + x.std(1) + x.mean(1) + x.norm(2, 1); },
       {4, 6}},
      {"where", [](const Tensor& x) { return torch::where(x > 0, x, -0.5) + torch::where(x < 0, 1.0, x); }, {4, 6}},
      {"clamp", [](const Tensor& x) { return x.clamp(-0.5, 0.5) + x.clamp_min(0) + x.clamp(c10::nullopt, 1); }, {4, 6}},
      {"masked_fill",
       [](const Tensor& x) { return x.masked_fill(x > 0, -std::numeric_limits<float>::infinity()).exp(); },
       {4, 6}},
      {"cat",
       [](const Tensor& x) { return torch::cat({x, x * 2}, 1) + torch::stack({x, x}, 1).view({4, 12}); },
       {4, 6}},
      {"split", [](const Tensor& x) { return x.chunk(2, 1)[0] * torch::sigmoid(x.chunk(2, 1)[1]); }, {4, 6}},
      {"roll", [](const Tensor& x) { return x.roll(1, 0) + x.permute({1, 0}).reshape({4, 6}); }, {4, 6}},
      {"unfold", [](const Tensor& x) { return x.unfold(1, 3, 2) * 2; }, {4, 6}},
      {"expand",
       [](const Tensor& x) { return x.unsqueeze(1).expand({4, 3, 6}) + x.repeat({1, 3}).view({4, 3, 6}); },
       {4, 6}},
      {"arange", [](const Tensor& x) { return x + torch::arange(6, x.options()) + torch::eye(4, 6); }, {4, 6}},
      {"dtypes", [](const Tensor& x) { return (x.to(at::kHalf) * 2).to(at::kDouble) + x.to(at::kInt); }, {4, 6}},
      {"new_tensors",
       [](const Tensor& x) { return x.new_zeros({4, 6}) + torch::full_like(x, 3) + torch::ones_like(x); },
       {4, 6}},
      {"in_place_views",
       [](const Tensor& x) {
         Tensor y = x.clone();
         y.narrow(1, 1, 2).mul_(3);
         y.select(0, 2).zero_();
         y.diagonal().add_(1);
         return y.t();
       },
       {4, 6}},
      {"slice_assign",
       [](const Tensor& x) {
         Tensor y = torch::zeros({8, 6});
         y.index_put_({torch::indexing::Slice(0, 4)}, x);
         y.index_put_({4}, 2.0);
         return y;
       },
       {4, 6}},
      {"out",
       [](const Tensor& x) {
         Tensor y = torch::empty_like(x);
         torch::mul_out(y, x, x);
         return y;
       },
       {4, 6}},
      {"rnn",
       [](const Tensor& x) {
         const Tensor h = torch::zeros({1, 4, 6});
         const std::vector<Tensor> weights{weight(), weight(), weight()[0], weight()[1]};
         return std::get<0>(torch::rnn_tanh(x, h, weights, true, 1, 0.0, false, false, true));
       },
       {4, 3, 6}},
      {"losses",
       [](const Tensor& x) { return torch::mse_loss(x, x * 2) + torch::nll_loss(torch::log_softmax(x, 1), index()); },
       {4, 6}},
      {"complex",
       [](const Tensor& x) { return at::view_as_real(at::view_as_complex(x.view({4, 3, 2})) * 2).flatten(1); },
       {4, 6}},
      {"fft", [](const Tensor& x) { return at::fft_irfft(at::fft_rfft(x)); }, {4, 6}},
      {"linalg",
       [](const Tensor& x) { return at::linalg_cholesky(torch::matmul(x.t(), x).add(torch::eye(6))); },
       {4, 6}},
      {"pixel_shuffle", [](const Tensor& x) { return at::pixel_shuffle(x, 2); }, {1, 4, 3, 3}},
      {"bits", [](const Tensor& x) { return (x * 100).to(at::kInt).bitwise_and(7).__lshift__(1); }, {4, 6}},
      {"division", [](const Tensor& x) { return at::div(x, 0.3, "floor") + x.remainder(0.7) + x.fmod(0.7); }, {4, 6}},
      {"triangle", [](const Tensor& x) { return x.tril().triu(-1) + torch::tril_indices(2, 3).sum(); }, {4, 6}},
  };
}

class Replays : public testing::TestWithParam<Case> {};

TEST_P(Replays, give_eagers_results_for_other_inputs) {
  const torch::NoGradGuard no_grad;
  const Case& program = GetParam();
  const Trace trace = trace_of(program.function, torch::randn(program.sizes));
  ASSERT_TRUE(whole(trace));
  const at::Tensor x = torch::randn(program.sizes);
  const at::Tensor wanted = program.function(x);
  const at::Tensor got = Replay(trace, x).output();
  EXPECT_TRUE(got.dtype() == wanted.dtype() && got.equal(wanted)) << text_of(trace);
  EXPECT_EQ(got.strides(), wanted.strides());
}

TEST_P(Replays, are_captured_alike_in_every_mode_and_every_time) {
  const Case& program = GetParam();
  const at::Tensor x = torch::randn(program.sizes);
  const Program run = [&] { return std::vector<at::Tensor>{program.function(x)}; };
  const Trace grad = capture(run, std::vector<at::Tensor>{x}, {}, nullptr);
  const Trace no_grad = trace_of(run, {x});
  EXPECT_EQ(difference(grad, no_grad), std::nullopt) << "grad and no-grad mode" << text_of(grad) << text_of(no_grad);
  const c10::InferenceMode inference;
  const Trace first = trace_of(run, {x});
  EXPECT_EQ(ops_of(no_grad), ops_of(first)) << "inference mode";
  EXPECT_EQ(difference(first, trace_of(run, {x})), std::nullopt) << text_of(first);
}

INSTANTIATE_TEST_SUITE_P(Programs, Replays, testing::ValuesIn(cases()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace capture_test
