#include "groups.h"
#include "programs.h"

/// Layers of the literature, written by hand: attention, norms, gates, codebooks, renderers, in inference and trained.
namespace sinter::test::hostile {
namespace {

using at::Tensor;
namespace nn = torch::nn;
using Tensors = std::vector<Tensor>;

/// Calls a step of gradient descent over these weights; `loss` is given what `draw` draws.
void descend(Session& s, Tensors weights, const std::function<Tensor(const Tensor&)>& loss,
             const std::function<Tensor()>& draw) {
  const at::AutoGradMode grad(true);
  for (auto& w : weights) w.requires_grad_();
  for (size_t i = 0; i < weights.size(); ++i) s.watch("weight " + std::to_string(i), &weights[i]);
  auto f = s.compile([&](const Tensor& x) {
    const Tensor value = loss(x);
    const auto slopes = torch::autograd::grad({value}, weights);
    const at::NoGradGuard none;
    for (size_t i = 0; i < weights.size(); ++i) weights[i].sub_(slopes[i], 0.05);
    return value.detach();
  });
  for (int call = 0; call < 8; ++call) f(draw());
}

void a_block_of_a_language_model(Session& s) {
  const Tensor scale = s.randn({8}), gate = s.randn({16, 8}) * 0.3, up = s.randn({16, 8}) * 0.3,
               down = s.randn({8, 16}) * 0.3;
  auto f = s.compile([&](const Tensor& x) {
    const Tensor normed = x * at::rsqrt(x.square().mean(-1, true) + 1e-6) * scale;
    return x + at::linear(at::silu(at::linear(normed, gate)) * at::linear(normed, up), down);
  });
  for (int call = 0; call < 8; ++call) f(s.randn({2, 3, 8}));
}

void heads_that_share_keys(Session& s) {
  auto f = s.compile([](const Tensor& q, const Tensor& k, const Tensor& v) {
    const Tensor slopes = at::pow(2.0, -at::arange(1, 5, q.options()) * 2).view({4, 1, 1});
    const Tensor place = at::arange(6, q.options());
    const Tensor bias = slopes * -(place.unsqueeze(1) - place.unsqueeze(0)).abs();
    const Tensor scores = at::matmul(q, k.repeat_interleave(2, 1).transpose(-1, -2)) / 2 + bias;
    return at::matmul(at::softmax(scores, -1), v.repeat_interleave(2, 1));
  });
  for (int call = 0; call < 8; ++call) f(s.randn({1, 4, 6, 4}), s.randn({1, 2, 6, 4}), s.randn({1, 2, 6, 4}));
}

void adapters_of_low_rank(Session& s) {
  const Tensor frozen = s.randn({5, 4});
  const Tensors weights{s.randn({2, 4}), s.randn({5, 2}) * 0.1};
  descend(
      s, weights,
      [=](const Tensor& x) {
        return (at::linear(x, frozen) + 2 * at::linear(at::linear(x, weights[0]), weights[1])).square().mean();
      },
      [&] { return s.randn({3, 4}); });
}

void channels_squeezed_and_excited(Session& s) {
  auto conv = s.adopt(nn::Conv2d(nn::Conv2dOptions(3, 4, 3).padding(1)));
  auto depth = s.adopt(nn::Conv2d(nn::Conv2dOptions(4, 4, 3).padding(1).groups(4)));
  auto squeeze = s.adopt(nn::Linear(4, 2));
  auto excite = s.adopt(nn::Linear(2, 4));
  auto f = s.compile([&](const Tensor& x) {
    const Tensor y = at::hardswish(depth->forward(conv->forward(x)));
    const Tensor gate = at::sigmoid(excite->forward(at::relu(squeeze->forward(y.mean(at::IntArrayRef{2, 3})))));
    return y * gate.unsqueeze(-1).unsqueeze(-1);
  });
  for (int call = 0; call < 8; ++call) f(s.randn({2, 3, 5, 5}));
}

/// Whole branches are left out by a draw of the host.
void paths_that_are_dropped(Session& s) {
  auto first = s.adopt(nn::Linear(4, 4));
  auto second = s.adopt(nn::Linear(4, 4));
  uint64_t coin = 3;
  auto f = s.compile([&](Tensor x) {
    for (auto* layer : {&first, &second}) {
      coin = coin * 2862933555777941757ULL + 3037000493ULL;
      if ((coin >> 60) < 8) x = x + at::relu((*layer)->forward(x)) * 2;
    }
    return x * 2;
  });
  for (int call = 0; call < 16; ++call) f(s.randn({3, 4}));
}

void a_norm_of_the_spectrum(Session& s) {
  Tensor u = s.randn({4});
  s.watch("u", &u);
  auto layer = s.adopt(nn::Linear(3, 4));
  auto f = s.compile([&](const Tensor& x) {
    const Tensor v = at::mv(layer->weight.t(), u);
    const Tensor unit = v / v.norm().clamp_min(1e-12);
    const Tensor next = at::mv(layer->weight, unit);
    u.copy_(next / next.norm().clamp_min(1e-12));
    return at::linear(x, layer->weight / u.dot(at::mv(layer->weight, unit)), layer->bias);
  });
  for (int call = 0; call < 8; ++call) f(s.randn({2, 3}));
}

void a_codebook_with_a_straight_gradient(Session& s) {
  const Tensors weights{s.randn({4, 3}), s.randn({6, 3})};
  descend(
      s, weights,
      [=](const Tensor& x) {
        const Tensor z = at::matmul(x, weights[0]);
        const Tensor code = at::cdist(z.detach(), weights[1].detach()).argmin(1);
        const Tensor q = weights[1].index_select(0, code);
        const Tensor through = z + (q - z).detach();
        return through.square().mean() + (q - z.detach()).square().mean() + 0.25 * (q.detach() - z).square().mean();
      },
      [&] { return s.randn({5, 4}); });
}

void a_choice_by_noise(Session& s) {
  const Tensors weights{s.randn({4, 3})};
  descend(
      s, weights,
      [=](const Tensor& x) {
        const Tensor logits = at::matmul(x, weights[0]);
        const Tensor noise = -at::log(-at::log(at::rand_like(logits) + 1e-9) + 1e-9);
        const Tensor soft = at::softmax((logits + noise) / 0.5, -1);
        const Tensor hard = at::zeros_like(soft).scatter(1, soft.argmax(1, true), 1.0);
        return ((hard - soft).detach() + soft).mul(x.slice(1, 0, 3)).sum();
      },
      [&] { return s.randn({5, 4}); });
}

void rays_through_a_volume(Session& s) {
  const Tensors weights{s.randn({12, 4}) * 0.3};
  descend(
      s, weights,
      [=](const Tensor& points) {
        const Tensor angles = at::cat({points, points * 2}, -1);
        const Tensor seen = at::matmul(at::cat({angles.sin(), angles.cos()}, -1), weights[0]);
        const Tensor alpha = 1 - at::exp(-at::relu(seen.select(-1, 3)) * 0.1);
        const Tensor passed = at::cumprod(1 - alpha + 1e-6, 1).roll(1, 1);
        const Tensor light = at::cat({at::ones_like(passed.slice(1, 0, 1)), passed.slice(1, 1)}, 1);
        return ((alpha * light).unsqueeze(-1) * at::sigmoid(seen.slice(-1, 0, 3))).sum(1).square().mean();
      },
      [&] { return s.randn({2, 5, 3}); });
}

void points_without_an_order(Session& s) {
  const Tensors weights{s.randn({3, 8}) * 0.4, s.randn({8, 4}) * 0.4};
  descend(
      s, weights,
      [=](const Tensor& points) {
        const Tensor best = at::relu(at::matmul(points - points.mean(1, true), weights[0])).amax(1);
        return at::log_softmax(at::matmul(best, weights[1]), -1).select(1, 0).neg().mean();
      },
      [&] { return s.randn({2, 7, 3}); });
}

/// Keys of earlier batches in a ring.
void contrasts_with_a_queue(Session& s) {
  Tensor queue = s.randn({8, 4});
  s.watch("queue", &queue);
  auto encode = s.adopt(nn::Linear(5, 4));
  int64_t place = 0;
  auto f = s.compile([&](const Tensor& x) {
    const Tensor key = torch::nn::functional::normalize(encode->forward(x));
    const Tensor scores = at::matmul(key, queue.t()) / 0.1;
    queue.slice(0, place, place + 2).copy_(key);
    place = (place + 2) % 8;
    return at::logsumexp(scores, 1);
  });
  for (int call = 0; call < 12; ++call) f(s.randn({2, 5}));
}

void a_cell_of_convolutions(Session& s) {
  auto conv = s.adopt(nn::Conv2d(nn::Conv2dOptions(5, 12, 3).padding(1)));
  auto f = s.compile([&](const Tensor& frames) {
    Tensor h = at::zeros({1, 3, 4, 4}, frames.options()), c = at::zeros_like(h);
    for (const Tensor& frame : frames.unbind(0)) {
      const auto gates = conv->forward(at::cat({frame.unsqueeze(0), h}, 1)).chunk(4, 1);
      c = at::sigmoid(gates[0]) * c + at::sigmoid(gates[1]) * at::tanh(gates[2]);
      h = at::sigmoid(gates[3]) * at::tanh(c);
    }
    return h;
  });
  for (int call = 0; call < 8; ++call) f(s.randn({3, 2, 4, 4}));
}

void a_mixture_of_densities(Session& s) {
  const Tensors weights{s.randn({3, 6}) * 0.4};
  descend(
      s, weights,
      [=](const Tensor& x) {
        const auto parts = at::matmul(x, weights[0]).chunk(3, 1);
        const Tensor z = (x.slice(1, 0, 1) - parts[0]) / at::softplus(parts[1]);
        const Tensor logs = at::log_softmax(parts[2], 1) - 0.5 * z.square() - at::softplus(parts[1]).log();
        return -logs.logsumexp(1).mean();
      },
      [&] { return s.randn({6, 3}); });
}

void weights_made_by_a_network(Session& s) {
  auto make = s.adopt(nn::Linear(3, 20));
  auto f = s.compile([&](const Tensor& context, const Tensor& x) {
    const Tensor made = make->forward(context);
    const Tensor w = made.slice(1, 0, 16).view({-1, 4, 4}), b = made.slice(1, 16);
    return at::baddbmm(b.unsqueeze(1), x.unsqueeze(1), w).squeeze(1);
  });
  for (int call = 0; call < 8; ++call) f(s.randn({5, 3}), s.randn({5, 4}));
}

struct Reversed : torch::autograd::Function<Reversed> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, double scale) {
    context->saved_data["scale"] = scale;
    return x.view_as(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    return {-context->saved_data["scale"].toDouble() * grads[0], Tensor()};
  }
};

void a_gradient_reversed(Session& s) {
  const Tensors weights{s.randn({4, 3}), s.randn({3, 2})};
  descend(
      s, weights,
      [=](const Tensor& x) {
        const Tensor h = at::tanh(at::matmul(x, weights[0]));
        return at::matmul(Reversed::apply(h, 0.5), weights[1]).square().mean() + h.mean();
      },
      [&] { return s.randn({5, 4}); });
}

void losses_of_masks(Session& s) {
  const Tensors weights{s.randn({2, 1, 3, 3}) * 0.4};
  descend(
      s, weights,
      [=](const Tensor& x) {
        const Tensor p = at::sigmoid(at::conv2d(x, weights[0], Tensor(), 1, at::IntArrayRef(1)));
        const Tensor y = (x > 0).to(at::kFloat).expand_as(p);
        const Tensor dice = 1 - (2 * (p * y).sum(at::IntArrayRef{2, 3}) + 1) /
                                    (p.sum(at::IntArrayRef{2, 3}) + y.sum(at::IntArrayRef{2, 3}) + 1);
        const Tensor right = p * y + (1 - p) * (1 - y);
        return dice.mean() - ((1 - right).pow(2) * right.clamp_min(1e-6).log()).mean();
      },
      [&] { return s.randn({2, 1, 6, 6}); });
}

void capsules_that_agree(Session& s) {
  const Tensor votes_of = s.randn({4, 3, 2, 5}) * 0.3;
  auto f = s.compile([&](const Tensor& x) {
    const Tensor votes = at::einsum("bid,ijed->bije", {x, votes_of});
    Tensor logits = at::zeros({x.size(0), 4, 3}, x.options()), out;
    for (int turn = 0; turn < 3; ++turn) {
      const Tensor sum = (at::softmax(logits, 2).unsqueeze(-1) * votes).sum(1);
      const Tensor square = sum.square().sum(-1, true);
      out = sum * square / (1 + square) / (square + 1e-8).sqrt();
      logits = logits + (votes * out.unsqueeze(1)).sum(-1);
    }
    return out;
  });
  for (int call = 0; call < 8; ++call) f(s.randn({2, 4, 5}));
}

void features_conditioned(Session& s) {
  auto norm = s.adopt(nn::BatchNorm2d(nn::BatchNorm2dOptions(4).affine(false)));
  auto film = s.adopt(nn::Linear(3, 8));
  auto f = s.compile([&](const Tensor& x, const Tensor& condition) {
    const auto parts = film->forward(condition).view({-1, 8, 1, 1}).chunk(2, 1);
    return at::leaky_relu(norm->forward(x) * (1 + parts[0]) + parts[1], 0.1);
  });
  for (int call = 0; call < 12; ++call) {
    norm->train(call < 6);
    f(s.randn({2, 4, 3, 3}), s.randn({2, 3}));
  }
}

const Program programs[] = {
    {"a_block_of_a_language_model", a_block_of_a_language_model},
    {"heads_that_share_keys", heads_that_share_keys},
    {"adapters_of_low_rank", adapters_of_low_rank},
    {"channels_squeezed_and_excited", channels_squeezed_and_excited},
    {"paths_that_are_dropped", paths_that_are_dropped},
    {"a_norm_of_the_spectrum", a_norm_of_the_spectrum},
    {"a_codebook_with_a_straight_gradient", a_codebook_with_a_straight_gradient},
    {"a_choice_by_noise", a_choice_by_noise},
    {"rays_through_a_volume", rays_through_a_volume},
    {"points_without_an_order", points_without_an_order},
    {"contrasts_with_a_queue", contrasts_with_a_queue},
    {"a_cell_of_convolutions", a_cell_of_convolutions},
    {"a_mixture_of_densities", a_mixture_of_densities},
    {"weights_made_by_a_network", weights_made_by_a_network},
    {"a_gradient_reversed", a_gradient_reversed},
    {"losses_of_masks", losses_of_masks},
    {"capsules_that_agree", capsules_that_agree},
    {"features_conditioned", features_conditioned},
};

}  // namespace

std::span<const Program> layer_programs() { return programs; }

}  // namespace sinter::test::hostile
