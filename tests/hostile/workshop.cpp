#include <torch/nn/modules/container/parameterlist.h>
#include <torch/optim/lbfgs.h>
#include <torch/serialize.h>

#include <deque>
#include <sstream>

#include "groups.h"
#include "programs.h"

/// What users do around their networks: hooks, clones, saved states, views under autograd, functions that fail half
/// way, tensors as keys of the host's own structures.
namespace sinter::test::hostile {
namespace {

using at::Tensor;
namespace nn = torch::nn;
using Tensors = std::vector<Tensor>;

void a_step_with_sparse_gradients(Session& s) {
  const at::AutoGradMode grad(true);
  auto table = s.adopt(nn::Embedding(nn::EmbeddingOptions(9, 3).sparse(true)));
  auto f = s.compile([&](const Tensor& words) {
    table->zero_grad();
    const Tensor loss = table->forward(words).square().sum();
    loss.backward();
    const at::NoGradGuard none;
    table->weight.add_(table->weight.grad(), -0.1);
    table->weight.mutable_grad() = Tensor();
    return loss.detach();
  });
  for (int call = 0; call < 8; ++call) f(s.integers(9, {5}));
}

void writes_to_views_under_autograd(Session& s) {
  const at::AutoGradMode grad(true);
  Tensor w = s.randn({4, 3}).requires_grad_();
  s.watch("w", &w);
  auto f = s.compile([&](const Tensor& x) {
    w.mutable_grad() = Tensor();
    Tensor y = x * w;
    y.select(0, 1).mul_(2);
    y.slice(1, 1).add_(w.slice(1, 1));
    y.diagonal().zero_();
    y.index_put_({torch::indexing::Slice(), 2}, w.select(1, 0));
    y.square().sum().backward();
    return y.detach();
  });
  for (int call = 0; call < 8; ++call) f(s.randn({4, 3}));
}

void a_network_cloned_and_compared(Session& s) {
  auto net = s.adopt(nn::Sequential(nn::Linear(3, 4), nn::ReLU(), nn::Linear(4, 2)));
  std::shared_ptr<nn::Module> copy;
  auto f = s.compile([&](const Tensor& x, bool again) {
    if (!copy || again) copy = net->clone();
    const Tensor now = net->forward(x), then = copy->as<nn::Sequential>()->forward(x);
    return std::make_pair(now, (now - then).abs().max());
  });
  for (int call = 0; call < 10; ++call) {
    f(s.randn({2, 3}), call == 6);
    for (auto& p : net->parameters()) p.add_(0.125);
  }
}

void a_state_saved_and_restored(Session& s) {
  auto layer = s.adopt(nn::Linear(3, 2));
  std::string saved;
  auto f = s.compile([&](const Tensor& x, int64_t what) {
    if (what == 1) {
      std::ostringstream stream;
      torch::save(layer->weight, stream);
      saved = stream.str();
    }
    if (what == 2) {
      std::istringstream stream(saved);
      Tensor back;
      torch::load(back, stream);
      layer->weight.copy_(back);
    }
    const Tensor y = layer->forward(x);
    layer->weight.mul_(1.5);
    return y;
  });
  for (int call = 0; call < 12; ++call) f(s.randn({2, 3}), call % 4 == 0 ? 1 : call % 4 == 3 ? 2 : 0);
}

void hooks_that_see_and_change(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(nn::Linear(3, 3));
  std::vector<Tensor> seen;
  double scale = 1;
  layer->weight.register_hook([&](const Tensor& g) { return g * scale; });
  auto f = s.compile([&](const Tensor& x) {
    seen.clear();
    layer->zero_grad();
    Tensor h = at::tanh(layer->forward(x));
    h.retain_grad();
    h.register_hook([&](const Tensor& g) { seen.push_back(g.clone()); });
    (h * h).sum().backward();
    return std::make_tuple(h.detach(), h.grad(), seen.at(0));
  });
  for (int call = 0; call < 10; ++call) {
    scale = call < 5 ? 1 : 0.5;
    f(s.randn({2, 3}));
  }
}

void convolutions_differentiated_twice(Session& s) {
  const at::AutoGradMode grad(true);
  auto conv = s.adopt(nn::Conv2d(nn::Conv2dOptions(2, 3, 3).padding(1)));
  auto f = s.compile([&](const Tensor& image) {
    conv->zero_grad();
    const Tensor x = image.detach().requires_grad_();
    const Tensor y = at::softplus(conv->forward(x)).sum();
    const Tensor slope = torch::autograd::grad({y}, {x}, {}, true, true)[0];
    slope.square().sum().backward();
    return slope.detach();
  });
  for (int call = 0; call < 8; ++call) f(s.randn({1, 2, 5, 5}));
}

void complex_numbers_under_autograd(Session& s) {
  const at::AutoGradMode grad(true);
  Tensor w = s.randn({8}, at::kComplexFloat).requires_grad_();
  s.watch("w", &w);
  auto f = s.compile([&](const Tensor& x) {
    w.mutable_grad() = Tensor();
    const Tensor y = at::fft_ifft(at::fft_fft(x.to(at::kComplexFloat)) * w);
    const Tensor loss = at::real(y).square().sum() + y.abs().sum();
    loss.backward();
    return loss.detach();
  });
  for (int call = 0; call < 8; ++call) f(s.randn({8}));
}

void a_batch_that_fails_and_is_skipped(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(nn::Linear(3, 2));
  torch::optim::SGD optimizer(layer->parameters(), 0.1);
  int64_t skipped = 0;
  auto f = s.compile([&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor scores = layer->forward(x);
    try {
      at::cross_entropy_loss(scores, y).backward();
    } catch (const c10::Error&) {
      ++skipped;
      return std::make_pair(scores.detach(), skipped);
    }
    optimizer.step();
    return std::make_pair(scores.detach(), skipped);
  });
  for (int call = 0; call < 12; ++call) {
    const bool fails = call % 4 == 3;
    const bool by_size = fails && s.on_cuda();  // a label out of range would be the end of a GPU's context
    const Tensor labels = s.integers(2, {by_size ? 3 : 4});
    f(s.randn({4, 3}), fails && !by_size ? labels + 5 : labels);
  }
}

void parameters_in_a_list(Session& s) {
  const at::AutoGradMode grad(true);
  nn::ParameterList list;
  for (int i = 0; i < 4; ++i) list->append((at::ones({3}) * (i + 1)).requires_grad_());
  s.adopt(list);
  auto f = s.compile([&](const Tensor& x) {
    list->zero_grad();
    Tensor y = x;
    for (const auto& item : *list) y = at::sin(y * item.value());
    y.sum().backward();
    return y.detach();
  });
  for (int call = 0; call < 8; ++call) f(s.randn({2, 3}));
}

void results_kept_in_a_history_of_the_host(Session& s) {
  std::deque<Tensor> history(3, s.randn({4}));
  auto f = s.compile([&](const Tensor& x) {
    history.push_back(at::tanh(x));
    history.pop_front();
    Tensor sum = at::zeros_like(x);
    double weight = 1;
    for (const Tensor& one : history) sum = sum + (weight /= 2) * one;
    return sum;
  });
  for (int call = 0; call < 10; ++call) f(s.randn({4}));
}

void numbers_formatted_on_the_way(Session& s) {
  std::string log;
  auto f = s.compile([&](const Tensor& x) {
    const Tensor y = x.softmax(-1);
    std::ostringstream line;
    line << y.argmax(-1) << y.size(0);
    log = line.str();
    return std::make_pair(y * 2, log);
  });
  for (int call = 0; call < 8; ++call) f(s.randn({2, 3}));
}

void a_convolution_unrolled_by_hand(Session& s) {
  auto f = s.compile([](const Tensor& x, const Tensor& w) {
    const Tensor windows = x.unfold(2, 3, 1).unfold(3, 3, 1);
    const Tensor y = at::einsum("bchwij,ocij->bohw", {windows, w});
    const Tensor strided = x.as_strided({x.size(0), 2, 2}, {x.stride(0), x.stride(2), 1});
    return std::make_pair(y, strided.sum(0));
  });
  for (int call = 0; call < 8; ++call) f(s.randn({2, 2, 5, 6}), s.randn({3, 2, 3, 3}));
}

void every_reduction_at_once(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const auto [var, mean] = at::var_mean(x, {1}, false);
    return Tensors{var,
                   mean,
                   x.norm(1, {0}),
                   at::logsumexp(x, at::IntArrayRef{0, 1}),
                   x.prod(),
                   at::count_nonzero(x > 0, at::IntArrayRef{1}),
                   std::get<1>(x.max(0)),
                   std::get<0>(at::aminmax(x)),
                   x.all(),
                   at::quantile(x, at::tensor({0.25, 0.5}, x.options()), 1),
                   at::histc(x, 5, -2, 2)};
  });
  for (int call = 0; call < 8; ++call) f(s.randn({4, 7}));
}

void masks_and_choices(Session& s) {
  auto f = s.compile([](const Tensor& x, const Tensor& m) {
    const Tensor a = at::where(m, x, at::full_like(x, -1));
    const Tensor b = x.masked_scatter(m, at::arange(x.numel(), x.options()));
    const Tensor c = at::tril(x).masked_fill(m.logical_not(), 7);
    const Tensor d = at::take_along_dim(x, x.argsort(1, false), 1);
    const Tensor e = at::heaviside(x, at::zeros({}, x.options())).logical_xor(m);
    return Tensors{a, b, c, d, e, x.clamp(-0.5, 0.5).sign(), at::logical_and(x > 0, m)};
  });
  for (int call = 0; call < 8; ++call) f(s.randn({4, 6}), s.randn({4, 6}) > 0);
}

void shapes_turned_around(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor a = x.movedim(0, 2).flatten(0, 1).unflatten(0, {-1, 2});
    const Tensor b = at::rot90(x, 1, {1, 2}).flip({0});
    const Tensor c = at::block_diag({x[0], x[1]});
    const Tensor d = x.repeat_interleave(2, 1).roll({1, 2}, {1, 2});
    const Tensor e = at::tensordot(x, x, {1, 2}, {1, 2});
    const Tensor g = at::kron(x[0], x[1]);
    const auto parts = x.tensor_split(3, 2);
    return Tensors{a.contiguous(), b, c, d, e, g, parts[0], parts[2] + 1, at::meshgrid({x[0][0], x[0][1]}, "ij")[1]};
  });
  for (int call = 0; call < 8; ++call) f(s.randn({2, 4, 5}));
}

void losses_of_every_kind(Session& s) {
  const at::AutoGradMode grad(true);
  Tensor w = s.randn({5}).requires_grad_();
  s.watch("w", &w);
  auto f = s.compile([&](const Tensor& x, const Tensor& y) {
    w.mutable_grad() = Tensor();
    const Tensor p = x * w, target = (y > 0).to(at::kFloat);
    const Tensor loss =
        at::binary_cross_entropy_with_logits(p, target) + at::l1_loss(p, y) + at::soft_margin_loss(p, target * 2 - 1) +
        at::poisson_nll_loss(p, y.abs(), true, false, 1e-8, 1) +
        at::cosine_embedding_loss(p, y, at::ones({4}, x.options())) + at::multi_margin_loss(p, y.argmax(1)) +
        at::hinge_embedding_loss(p, target * 2 - 1) + at::margin_ranking_loss(p, y, target * 2 - 1, 0.1);
    loss.backward();
    return loss.detach();
  });
  for (int call = 0; call < 8; ++call) f(s.randn({4, 5}), s.randn({4, 5}));
}

void activations_of_every_kind(Session& s) {
  const at::AutoGradMode grad(true);
  Tensor w = s.randn({6}).requires_grad_();
  s.watch("w", &w);
  auto f = s.compile([&](const Tensor& x) {
    w.mutable_grad() = Tensor();
    const Tensor y = x * w;
    const Tensor sum = at::elu(y) + at::selu(y) + at::celu(y) + at::hardtanh(y) + at::hardswish(y) + at::mish(y) +
                       at::softplus(y, 2, 5) + at::prelu(y, w.slice(0, 0, 1)) + at::glu(at::cat({y, y}, -1)) +
                       at::hardsigmoid(y) + at::softshrink(y) + at::hardshrink(y) + at::threshold(y, 0.1, 0.5) +
                       at::leaky_relu(y, 0.2) + at::gelu(y, "tanh") + at::log_sigmoid(y);
    sum.sum().backward();
    return sum.detach();
  });
  for (int call = 0; call < 8; ++call) f(s.randn({3, 6}));
}

/// Whole numbers decide by `switch`, and each case is another formula.
void a_formula_chosen_by_a_number(Session& s) {
  auto f = s.compile([](const Tensor& x, int64_t kind) {
    switch (kind) {
      case 0:
        return x.sin();
      case 1:
        return x.sin().cos();
      default:
        return x.sin() * kind;
    }
  });
  for (int call = 0; call < 12; ++call) f(s.randn({4}), call / 4 + call % 2);
}

void distances_and_products(Session& s) {
  auto f = s.compile([](const Tensor& a, const Tensor& b) {
    const Tensor d1 = at::cdist(a, b, 1), d2 = at::pdist(a), cosine = at::cosine_similarity(a.unsqueeze(1), b, -1);
    const Tensor outer = at::outer(a[0], b[0]), chained = at::chain_matmul({a, b.t(), a});
    const Tensor batch = at::baddbmm(d1.unsqueeze(0), a.unsqueeze(0), b.t().unsqueeze(0), 0.5, 2);
    return Tensors{d1, d2, cosine, outer, chained, batch, at::linalg_matrix_power(a.t().mm(b), 3), at::vander(a[0])};
  });
  for (int call = 0; call < 8; ++call) f(s.randn({4, 3}, at::kDouble), s.randn({4, 3}, at::kDouble));
}

void recurrent_layers_of_every_kind(Session& s) {
  auto rnn = s.adopt(nn::RNN(nn::RNNOptions(3, 4).nonlinearity(torch::kReLU).bidirectional(true)));
  auto cell = s.adopt(nn::GRUCell(8, 4));
  auto lstm = s.adopt(nn::LSTMCell(4, 3));
  auto f = s.compile([&](const Tensor& x) {
    const Tensor y = std::get<0>(rnn->forward(x));
    Tensor h;
    std::tuple<Tensor, Tensor> state;
    for (int64_t t = 0; t < y.size(0); ++t) {
      h = h.defined() ? cell->forward(y[t], h) : cell->forward(y[t]);
      state = t > 0 ? lstm->forward(h, state) : lstm->forward(h);
    }
    return std::make_tuple(y, h, std::get<1>(state));
  });
  for (int call = 0; call < 8; ++call) f(s.randn({3, 2, 3}));
}

const Program programs[] = {
    {"a_step_with_sparse_gradients", a_step_with_sparse_gradients},
    {"writes_to_views_under_autograd", writes_to_views_under_autograd},
    {"a_network_cloned_and_compared", a_network_cloned_and_compared},
    {"a_state_saved_and_restored", a_state_saved_and_restored},
    {"hooks_that_see_and_change", hooks_that_see_and_change},
    {"convolutions_differentiated_twice", convolutions_differentiated_twice},
    {"complex_numbers_under_autograd", complex_numbers_under_autograd},
    {"a_batch_that_fails_and_is_skipped", a_batch_that_fails_and_is_skipped},
    {"parameters_in_a_list", parameters_in_a_list},
    {"results_kept_in_a_history_of_the_host", results_kept_in_a_history_of_the_host},
    {"numbers_formatted_on_the_way", numbers_formatted_on_the_way},
    {"a_convolution_unrolled_by_hand", a_convolution_unrolled_by_hand},
    {"every_reduction_at_once", every_reduction_at_once},
    {"masks_and_choices", masks_and_choices},
    {"shapes_turned_around", shapes_turned_around},
    {"losses_of_every_kind", losses_of_every_kind},
    {"activations_of_every_kind", activations_of_every_kind},
    {"a_formula_chosen_by_a_number", a_formula_chosen_by_a_number},
    {"distances_and_products", distances_and_products},
    {"recurrent_layers_of_every_kind", recurrent_layers_of_every_kind},
};

}  // namespace

std::span<const Program> workshop_programs() { return programs; }

}  // namespace sinter::test::hostile
