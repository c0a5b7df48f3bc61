#include "rows.h"

#include <ATen/ATen.h>

#include <array>

namespace sinter::test::fuzz {
namespace {

using at::Tensor;
using Tensors = std::span<Tensor>;
using Numbers = std::span<const double>;

/// An expression as text and as code: what is printed is what ran.
#define EXPRESSION(...) #__VA_ARGS__, [](Tensors t, [[maybe_unused]] Numbers n) -> Tensor { return __VA_ARGS__; }

const Row all_rows[] = {
    {Kind::pointwise, "f", EXPRESSION(-t[0])},
    {Kind::pointwise, "f", EXPRESSION(at::abs(t[0]))},
    {Kind::pointwise, "f", EXPRESSION(at::relu(t[0]))},
    {Kind::pointwise, "f", EXPRESSION(at::sigmoid(t[0]))},
    {Kind::pointwise, "f", EXPRESSION(at::tanh(t[0]))},
    {Kind::pointwise, "f", EXPRESSION(at::gelu(t[0]))},
    {Kind::pointwise, "f", EXPRESSION(at::gelu(t[0], "tanh"))},
    {Kind::pointwise, "f", EXPRESSION(at::silu(t[0]))},
    {Kind::pointwise, "f", EXPRESSION(at::erf(t[0]))},
    {Kind::pointwise, "f", EXPRESSION(at::sin(t[0]))},
    {Kind::pointwise, "f", EXPRESSION(at::cos(t[0]))},
    {Kind::pointwise, "f", EXPRESSION(at::exp(at::clamp_max(t[0], 2)))},
    {Kind::pointwise, "f", EXPRESSION(at::log1p(at::abs(t[0])))},
    {Kind::pointwise, "f", EXPRESSION(at::sqrt(at::abs(t[0])))},
    {Kind::pointwise, "f", EXPRESSION(at::rsqrt(at::abs(t[0]) + 1))},
    {Kind::pointwise, "f", EXPRESSION(at::reciprocal(at::abs(t[0]) + 1))},
    {Kind::pointwise, "fr", EXPRESSION(at::floor(t[0] * n[0] + 0.37))},
    {Kind::pointwise, "f", EXPRESSION(at::sign(t[0]))},
    {Kind::pointwise, "f", EXPRESSION(at::leaky_relu(t[0], 0.1))},
    {Kind::pointwise, "f", EXPRESSION(at::elu(t[0]))},
    {Kind::pointwise, "f", EXPRESSION(at::softplus(t[0]))},
    {Kind::pointwise, "f", EXPRESSION(at::hardswish(t[0]))},
    {Kind::pointwise, "f", EXPRESSION(at::nan_to_num(t[0]))},
    {Kind::pointwise, "fr", EXPRESSION(at::clamp(t[0], -1.5, n[0]))},
    {Kind::pointwise, "fr", EXPRESSION(t[0] * n[0])},
    {Kind::pointwise, "fr", EXPRESSION(t[0] + n[0])},
    {Kind::pointwise, "fr", EXPRESSION(n[0] - t[0])},
    {Kind::pointwise, "fp", EXPRESSION(t[0] / n[0])},
    {Kind::pointwise, "fs", EXPRESSION(t[0] * n[0])},
    {Kind::pointwise, "fB", EXPRESSION(t[0] + t[1])},
    {Kind::pointwise, "fB", EXPRESSION(t[0] - t[1])},
    {Kind::pointwise, "fB", EXPRESSION(t[0] * t[1])},
    {Kind::pointwise, "fB", EXPRESSION(t[0] / (at::abs(t[1]) + 0.5))},
    {Kind::pointwise, "fBr", EXPRESSION(at::add(t[0], t[1], n[0]))},
    {Kind::pointwise, "fBr", EXPRESSION(at::sub(t[0], t[1], n[0]))},
    {Kind::pointwise, "fB", EXPRESSION(at::maximum(t[0], t[1]))},
    {Kind::pointwise, "fB", EXPRESSION(at::minimum(t[0], t[1]))},
    {Kind::pointwise, "fS", EXPRESSION(at::lerp(t[0], t[1], 0.25))},
    {Kind::pointwise, "fBBr", EXPRESSION(at::addcmul(t[0], t[1], t[2], n[0]))},
    {Kind::pointwise, "fB", EXPRESSION(at::where(t[0] > t[1], t[0], t[1] * 2))},
    {Kind::pointwise, "bff", EXPRESSION(at::where(t[0], t[1], t[2]))},
    {Kind::pointwise, "fB", EXPRESSION(t[0] > t[1])},
    {Kind::pointwise, "fr", EXPRESSION(t[0] < n[0])},
    {Kind::pointwise, "b", EXPRESSION(at::logical_not(t[0]))},
    {Kind::pointwise, "bb", EXPRESSION(at::logical_and(t[0], t[1]))},
    {Kind::pointwise, "fb", EXPRESSION(at::masked_fill(t[0], t[1], -1))},
    {Kind::pointwise, "kn", EXPRESSION(t[0] + n[0])},
    {Kind::pointwise, "kk", EXPRESSION(at::minimum(t[0], t[1]))},
    {Kind::pointwise, "k", EXPRESSION(at::remainder(t[0], 3))},

    {Kind::cast, "x", EXPRESSION(t[0].to(at::kFloat))},
    {Kind::cast, "x", EXPRESSION(t[0].to(at::kDouble))},
    {Kind::cast, "f", EXPRESSION(t[0].to(at::kHalf))},
    {Kind::cast, "f", EXPRESSION(t[0].to(at::kBFloat16))},
    {Kind::cast, "f", EXPRESSION(at::clamp(at::nan_to_num(t[0]) * 3 + 0.37, -9, 9).to(at::kLong))},
    {Kind::cast, "f", EXPRESSION(at::clamp(at::nan_to_num(t[0]) * 3 + 0.37, -9, 9).to(at::kInt))},
    {Kind::cast, "x", EXPRESSION(t[0].to(at::kBool))},
    {Kind::cast, "xx", EXPRESSION(t[0].to(t[1].scalar_type()))},

    {Kind::reduction, "f", EXPRESSION(at::sum(t[0]))},
    {Kind::reduction, "f", EXPRESSION(at::mean(t[0]))},
    {Kind::reduction, "f", EXPRESSION(at::amax(t[0]))},
    {Kind::reduction, "fd", EXPRESSION(at::sum(t[0], n[0]))},
    {Kind::reduction, "fd", EXPRESSION(at::sum(t[0], n[0], true))},
    {Kind::reduction, "fd", EXPRESSION(at::mean(t[0], n[0], true))},
    {Kind::reduction, "fd", EXPRESSION(at::amax(t[0], n[0]))},
    {Kind::reduction, "fd", EXPRESSION(at::amin(t[0], n[0], true))},
    {Kind::reduction, "fd", EXPRESSION(std::get<0>(at::max(t[0], n[0])))},
    {Kind::reduction, "fd", EXPRESSION(std::get<1>(at::max(t[0], n[0])))},
    {Kind::reduction, "fd", EXPRESSION(at::argmax(t[0], n[0]))},
    {Kind::reduction, "fd", EXPRESSION(at::var(t[0], n[0], false))},
    {Kind::reduction, "fd", EXPRESSION(at::softmax(t[0], n[0]))},
    {Kind::reduction, "fd", EXPRESSION(at::log_softmax(t[0], n[0]))},
    {Kind::reduction, "fd", EXPRESSION(at::logsumexp(t[0], n[0]))},
    {Kind::reduction, "fd", EXPRESSION(at::cumsum(t[0], n[0]))},
    {Kind::reduction, "fd", EXPRESSION(at::norm(t[0], 2, n[0]))},
    {Kind::reduction, "b", EXPRESSION(at::any(t[0]))},
    {Kind::reduction, "bd", EXPRESSION(at::all(t[0], n[0]))},
    {Kind::reduction, "bd", EXPRESSION(at::sum(t[0], n[0]))},
    {Kind::reduction, "k", EXPRESSION(at::sum(t[0]))},

    {Kind::view, "xdd", EXPRESSION(t[0].transpose(n[0], n[1]))},
    {Kind::view, "xdi", EXPRESSION(t[0].select(n[0], n[1]))},
    {Kind::view, "xdil", EXPRESSION(t[0].narrow(n[0], n[1], n[2]))},
    {Kind::view, "xd", EXPRESSION(t[0].slice(n[0], 0, t[0].size(n[0]), 2))},
    {Kind::view, "xd", EXPRESSION(t[0].unsqueeze(n[0]))},
    {Kind::view, "x", EXPRESSION(t[0].squeeze())},
    {Kind::view, "x", EXPRESSION(t[0].reshape({-1}))},
    {Kind::view, "xd", EXPRESSION(t[0].reshape({t[0].size(0), -1}))},
    {Kind::view, "x", EXPRESSION(t[0].view({-1}))},
    {Kind::view, "x", EXPRESSION(t[0].unsqueeze(0).expand({3, -1}))},
    {Kind::view, "x", EXPRESSION(t[0].unsqueeze(0).expand({2, -1, -1}))},
    {Kind::view, "xB", EXPRESSION(t[0].expand_as(t[1]))},
    {Kind::view, "xdd", EXPRESSION(t[0].diagonal(0, n[0], n[1]))},
    {Kind::view, "xd", EXPRESSION(t[0].chunk(2, n[0]).back())},
    {Kind::view, "xd", EXPRESSION(t[0].unbind(n[0]).at(0))},
    {Kind::view, "xdn", EXPRESSION(t[0].unfold(n[0], n[1], 1))},
    {Kind::view, "xd", EXPRESSION(t[0].movedim(n[0], 0))},
    {Kind::view, "xd", EXPRESSION(t[0].flatten(0, n[0]))},
    {Kind::view, "x", EXPRESSION(t[0].detach())},
    {Kind::view, "x", EXPRESSION(t[0].contiguous())},
    {Kind::view, "x", EXPRESSION(t[0].numpy_T())},

    {Kind::library, "fM", EXPRESSION(at::matmul(t[0], t[1]))},
    {Kind::library, "fM", EXPRESSION(at::matmul(t[0], t[1]))},
    {Kind::library, "f", EXPRESSION(at::matmul(t[0], t[0].transpose(-1, -2)))},
    {Kind::library, "fM", EXPRESSION(at::linear(t[0], t[1].t()))},
    {Kind::library, "f", EXPRESSION(at::layer_norm(t[0], {t[0].size(-1)}))},
    {Kind::library, "f", EXPRESSION(at::max_pool2d(t[0], 2))},
    {Kind::library, "f", EXPRESSION(at::avg_pool1d(t[0], 2))},
    // A copy: of a tensor with one channel, ATen's kernels take the stride of that channel for the batch's.
    {Kind::library, "f", EXPRESSION(at::adaptive_avg_pool1d(t[0].clone(at::MemoryFormat::Contiguous), 2))},
    {Kind::library, "f", EXPRESSION(at::conv1d(t[0], t[0].transpose(0, 1).narrow(2, 0, 1)))},
    {Kind::library, "fSd", EXPRESSION(at::cat({t[0], t[1]}, n[0]))},
    {Kind::library, "fS", EXPRESSION(at::stack({t[0], t[1]}))},
    {Kind::library, "xd", EXPRESSION(at::flip(t[0], n[0]))},
    {Kind::library, "xdn", EXPRESSION(at::roll(t[0], n[1], n[0]))},
    {Kind::library, "f", EXPRESSION(at::tril(t[0]))},
    {Kind::library, "fd", EXPRESSION(std::get<0>(at::sort(t[0], n[0])))},
    {Kind::library, "fd", EXPRESSION(std::get<0>(at::topk(t[0], 2, n[0])))},
    {Kind::library, "fk", EXPRESSION(at::embedding(t[0], t[1])), On::cpu},
    {Kind::library, "fk", EXPRESSION(at::embedding(t[0], at::remainder(t[1], t[0].size(0)))), On::cuda},
    {Kind::library, "xkd", EXPRESSION(at::index_select(t[0], n[0], t[1])), On::cpu},
    {Kind::library, "xkd", EXPRESSION(at::index_select(t[0], n[0], at::remainder(t[1], t[0].size(n[0])))), On::cuda},
    {Kind::library, "xk", EXPRESSION(at::index(t[0], {t[1]})), On::cpu},
    {Kind::library, "xk", EXPRESSION(at::index(t[0], {at::remainder(t[1], t[0].size(0))})), On::cuda},
    {Kind::library, "fkd", EXPRESSION(at::gather(t[0], n[0], t[1])), On::cpu},
    {Kind::library, "fkd", EXPRESSION(at::gather(t[0], n[0], at::remainder(t[1], t[0].size(n[0])))), On::cuda},
    {Kind::library, "x", EXPRESSION(at::constant_pad_nd(t[0], {1, 2}, 0.5))},
    {Kind::library, "x", EXPRESSION(t[0].repeat({2, 1}))},
    {Kind::library, "x", EXPRESSION(t[0].clone())},
    {Kind::library, "f", EXPRESSION(at::zeros_like(t[0]))},
    {Kind::library, "fr", EXPRESSION(at::full_like(t[0], n[0]))},
    {Kind::library, "xd", EXPRESSION(at::arange(t[0].size(n[0]), t[0].options().dtype(at::kFloat)))},

    {Kind::write, "wB", EXPRESSION(t[0].add_(t[1]))},
    {Kind::write, "wB", EXPRESSION(t[0].mul_(at::tanh(t[1])))},
    {Kind::write, "wB", EXPRESSION(t[0].sub_(t[1]))},
    {Kind::write, "wB", EXPRESSION(t[0].copy_(t[1]))},
    {Kind::write, "wr", EXPRESSION(t[0].mul_(n[0]))},
    {Kind::write, "wr", EXPRESSION(t[0].fill_(n[0]))},
    {Kind::write, "w", EXPRESSION(t[0].zero_())},
    {Kind::write, "w", EXPRESSION(t[0].relu_())},
    {Kind::write, "w", EXPRESSION(t[0].tanh_())},
    {Kind::write, "w", EXPRESSION(t[0].clamp_(-0.5, 0.5))},
    {Kind::write, "wdi", EXPRESSION(t[0].select(n[0], n[1]).add_(1))},
    {Kind::write, "wdil", EXPRESSION(t[0].narrow(n[0], n[1], n[2]).mul_(-1))},
    {Kind::write, "wfdi", EXPRESSION(t[0].select(n[0], n[1]).copy_(t[1]))},
    {Kind::write, "wfdil", EXPRESSION(t[0].narrow(n[0], n[1], n[2]).copy_(t[1]))},
    {Kind::write, "wdd", EXPRESSION(t[0].transpose(n[0], n[1]).cumsum_(n[0]))},
    {Kind::write, "wbr", EXPRESSION(t[0].masked_fill_(t[1], n[0]))},
    {Kind::write, "wkf", EXPRESSION(t[0].index_put_({t[1]}, t[2])), On::cpu},
    // Where an index stands twice, which of two numbers is written last is open on a GPU: there is one.
    {Kind::write, "wkf", EXPRESSION(t[0].index_put_({at::remainder(t[1], t[0].size(0))}, at::amax(t[2]))), On::cuda},
    {Kind::write, "wkf", EXPRESSION(t[0].index_put_({t[1]}, t[2], true)), On::cpu},
    {Kind::write, "wkf", EXPRESSION(t[0].index_put_({at::remainder(t[1], t[0].size(0))}, t[2], true)), On::cuda},
    {Kind::write, "wkfd", EXPRESSION(t[0].index_add_(n[0], t[1], t[2])), On::cpu},
    {Kind::write, "wkfd", EXPRESSION(t[0].index_add_(n[0], at::remainder(t[1], t[0].size(n[0])), t[2])), On::cuda},
    {Kind::write, "wkd", EXPRESSION(t[0].index_fill_(n[0], t[1], 0.5)), On::cpu},
    {Kind::write, "wkd", EXPRESSION(t[0].index_fill_(n[0], at::remainder(t[1], t[0].size(n[0])), 0.5)), On::cuda},
    {Kind::write, "wSS", EXPRESSION(at::add_out(t[0], t[1], t[2]))},
    {Kind::write, "wSS", EXPRESSION(at::mul_out(t[0], t[1], t[2]))},
    {Kind::write, "wS", EXPRESSION(at::sin_out(t[0], t[1]))},
    {Kind::write, "wS", EXPRESSION(at::cumsum_out(t[0], t[1], 0))},
    {Kind::write, "ofM", EXPRESSION(at::matmul_out(t[0], t[1], t[2]))},
    {Kind::write, "wBB", EXPRESSION(t[0].addcmul_(t[1], t[2], 0.5))},
    {Kind::write, "wS", EXPRESSION(t[0].lerp_(t[1], 0.1))},
    {Kind::write, "k", EXPRESSION(t[0].add_(1).remainder_(3))},

    {Kind::random, "f", EXPRESSION(at::rand_like(t[0]))},
    {Kind::random, "f", EXPRESSION(at::randn_like(t[0]) * 0.5)},
    {Kind::random, "f", EXPRESSION(at::dropout(t[0], 0.5, true))},
    {Kind::random, "f", EXPRESSION(at::bernoulli(at::sigmoid(t[0]))), On::cpu},
    {Kind::random, "f", EXPRESSION(at::bernoulli(at::nan_to_num(at::sigmoid(t[0])))), On::cuda},

    {Kind::read, "f", EXPRESSION(t[0] * at::mean(t[0]).item<double>())},
    {Kind::read, "fr", EXPRESSION(at::masked_select(t[0], t[0] > n[0]))},
    {Kind::read, "fr", EXPRESSION(at::nonzero(t[0] > n[0]))},
    {Kind::read, "ff", EXPRESSION(at::equal(t[0], t[1]) ? t[0] + 1 : t[0] - 1)},
};

Tensor not_an_expression(Tensors, Numbers) { return {}; }

}  // namespace

std::span<const Row> rows() { return all_rows; }

const Row& module_row() {
  static const Row row{Kind::module, "x", EXPRESSION(t[0])};
  return row;
}

const Row& bounded_module_row() {
  static const Row row{Kind::module, "k", EXPRESSION(at::remainder(t[0], 5)), On::cuda};
  return row;
}

const Row& branch_row() {
  static const Row row{Kind::branch, "fr", "", not_an_expression};
  return row;
}

#undef EXPRESSION

}  // namespace sinter::test::fuzz
