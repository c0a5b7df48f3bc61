// Single operators and small programs of them: results, layouts and dtypes of eager, in every mode without gradients.
// And what LibTorch must leave to Sinter for that: the key of the dispatcher that its kernels stand at.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "checked.h"
#include "frontend/replay/unboxed_hook.h"
#include "frontend/torch/libtorch_version.h"

namespace sinter::test {
namespace {

using Function = std::function<at::Tensor(const at::Tensor&)>;

struct Case {
  std::string name;
  Function function;
  std::vector<int64_t> sizes;
};

at::Tensor fixed(at::IntArrayRef sizes) {
  auto generator = at::detail::createCPUGenerator(3);
  return torch::randn(sizes, generator);
}

/// Tensors the programs close over.
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
      {"split_into_sizes", [](const Tensor& x) { return x.split(2)[1].exp(); }, {4, 6}},
      {"views_of_views", [](const Tensor& x) { return (x + 1).view({24}).narrow(0, 2, 5) * 2; }, {4, 6}},
      {"turned_in_place",
       [](const Tensor& x) {
         Tensor y = x + 1;
         y.t_();
         y.unsqueeze_(0);
         return y * 2;
       },
       {4, 6}},
      {"data", [](const Tensor& x) { return (x + 1).data().mul(2) + x.data().slice(1, 0, 6); }, {4, 6}},
      {"another_dtype", [](const Tensor& x) { return (x + 1).view(at::kInt).to(at::kDouble) + 1; }, {4, 6}},
      {"written_through_another_dtype", [](const Tensor& x) { return (x + 1).view(at::kInt).zero_(); }, {4, 6}},
      {"a_row_copied_to_another",
       [](const Tensor& x) {
         Tensor y = x.clone();
         y.select(0, 1).copy_(y.select(0, 2));
         return y;
       },
       {4, 6}},
      {"out_resized",
       [](const Tensor& x) {
         Tensor y = torch::empty({0});
         return torch::add_out(y, x, x);
       },
       {4, 6}},
      {"a_table_of_numbers",
       [](const Tensor& x) {
         Tensor table = torch::tensor(std::vector<float>{1, 2, 3});
         table.mul_(2);
         return x + table;
       },
       {3}},
      {"a_mask_written_through_an_accessor",
       [](const Tensor& x) {
         Tensor mask = torch::zeros({3});
         mask.accessor<float, 1>()[1] = 7;
         return x + mask;
       },
       {3}},
      {"a_number_put_by_index",
       [](const Tensor& x) {
         Tensor y = x.clone();
         y.index_put_({0}, 2.0);
         return y;
       },
       {3}},
      {"numbers_alone", [](const Tensor&) { return torch::tensor(std::vector<float>{1, 2}); }, {3}},
      {"numbers_that_become_numbers_again",
       [](const Tensor& x) {
         const auto number = [](double value) { return at::scalar_tensor(value, at::kDouble); };
         return x * (number(3) * number(2) + 1).item<double>();
       },
       {3}},
      {"a_thread_of_its_own",
       [](const Tensor& x) {
         std::thread([] { torch::ones({3}).exp(); }).join();
         return x + 1;
       },
       {3}},
  };
}

class Operators : public ::testing::TestWithParam<Case> {
 protected:
  static void expect_eagers_results() {
    const Case& program = GetParam();
    auto fast = compile(program.function, checked());
    for (int call = 0; call < 5; ++call) {
      const at::Tensor x = torch::randn(program.sizes);
      EXPECT_TRUE(same(fast(x), program.function(x))) << "call " << call << "\n" << fast.report();
    }
  }
};

TEST_P(Operators, give_eagers_results_without_grad_mode) {
  const torch::NoGradGuard no_grad;
  expect_eagers_results();
}

TEST_P(Operators, give_eagers_results_in_grad_mode) { expect_eagers_results(); }

TEST_P(Operators, give_eagers_results_in_inference_mode) {
  const c10::InferenceMode inference;
  expect_eagers_results();
}

INSTANTIATE_TEST_SUITE_P(Programs, Operators, ::testing::ValuesIn(cases()),
                         [](const auto& instance) { return instance.param.name; });

TEST(Dispatcher, has_no_other_kernels_at_the_keys_that_operators_are_met_at) {
  std::vector<std::string> taken;
  const auto ours = frontend::unboxed_operators();
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (std::ranges::find(ours, c10::toString(name)) != ours.end()) continue;
    const auto op = c10::Dispatcher::singleton().findOp(name);
    for (const auto key : {frontend::kCaptureKey, frontend::kAboveAutogradKey}) {
      if (op && op->hasKernelForDispatchKey(key)) taken.push_back(c10::toString(name));
    }
  }
  EXPECT_TRUE(taken.empty()) << ::testing::PrintToString(taken);
}

TEST_F(Checked, kernels_that_call_composite_operators_run_as_one) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const at::Tensor& x) { return at::matrix_exp(x * 2) + 1; };
  auto fast = compile(program, checked());
  for (int call = 0; call < 4; ++call) {
    const at::Tensor x = at::eye(3) * (call + 2);  // of a norm that LibTorch squares again and again for
    EXPECT_TRUE(at::allclose(fast(x), program(x))) << call;
  }
}

TEST_F(Checked, scatters_into_strides_where_the_tensor_begins) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const at::Tensor& x, const at::Tensor& y) {
    return at::as_strided_scatter(x.slice(0, 1), y * 2, {2, 4}, {4, 1}) + x.slice(0, 1);
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 5; ++call) {
    const at::Tensor x = at::randn({5, 4}), y = at::randn({2, 4});
    EXPECT_TRUE(at::allclose(fast(x, y), program(x, y))) << call;
  }
  EXPECT_GE(fast.stats().replayed, 3) << fast.report();
}

}  // namespace
}  // namespace sinter::test
