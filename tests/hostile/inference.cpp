#include "groups.h"
#include "programs.h"

/// Distributions: samplers, variational fits, mixtures and processes.
namespace sinter::test::hostile {
namespace {

using at::Tensor;
namespace nn = torch::nn;

struct VaeImpl : nn::Module {
  VaeImpl() {
    encode = register_module("encode", nn::Linear(6, 8));
    decode = register_module("decode", nn::Linear(4, 6));
  }
  std::tuple<Tensor, Tensor, Tensor> forward(const Tensor& x) {
    const auto parts = encode->forward(x).chunk(2, -1);
    Tensor z = parts[0];
    if (is_training()) z = z + at::randn_like(z) * (0.5 * parts[1]).exp();
    return {at::sigmoid(decode->forward(z)), parts[0], parts[1]};
  }
  nn::Linear encode{nullptr}, decode{nullptr};
};
TORCH_MODULE(Vae);

void a_variational_autoencoder(Session& s) {
  const at::AutoGradMode grad(true);
  auto vae = s.adopt(Vae());
  torch::optim::Adam optimizer(vae->parameters(), 0.01);
  auto f = s.compile([&](const Tensor& x) {
    const auto [seen, mean, logs] = vae->forward(x);
    const Tensor loss =
        at::binary_cross_entropy(seen, x, {}, at::Reduction::Sum) - 0.5 * (1 + logs - mean.pow(2) - logs.exp()).sum();
    if (!vae->is_training()) return loss.detach();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    return loss.detach();
  });
  for (int call = 0; call < 12; ++call) {
    vae->train(call % 4 != 3);
    f(at::sigmoid(s.randn({5, 6})));
  }
}

Tensor energy(const Tensor& q) { return 0.5 * q.square().sum() + (q[0] * q[1]).sin(); }

/// Steps along the gradient, then taken or not by a draw that the host looks at.
void a_hamiltonian_sampler(Session& s) {
  const at::AutoGradMode grad(true);
  Tensor place = s.randn({3}, at::kDouble);
  s.watch("place", &place);
  auto f = s.compile([&](double step) {
    const auto slope = [](const Tensor& q) {
      const Tensor leaf = q.detach().requires_grad_();
      return torch::autograd::grad({energy(leaf)}, {leaf})[0];
    };
    Tensor q = place, p = at::randn_like(place);
    const Tensor before = energy(q) + 0.5 * p.square().sum();
    p = p - step / 2 * slope(q);
    for (int i = 0; i < 3; ++i) {
      q = q + step * p;
      p = p - (i < 2 ? step : step / 2) * slope(q);
    }
    const Tensor after = energy(q) + 0.5 * p.square().sum();
    const bool taken = (at::rand({}, q.options()) < at::exp(before - after)).item<bool>();
    if (taken) place = q.detach();
    return taken;
  });
  for (int call = 0; call < 10; ++call) f(0.2);
}

void a_random_walk_accepted_by_where(Session& s) {
  Tensor chains = s.randn({60, 2});
  s.watch("chains", &chains);
  auto f = s.compile([&] {
    const Tensor proposed = chains + 0.5 * at::randn_like(chains);
    const auto log_density = [](const Tensor& x) { return -(x.square().sum(1) + x.prod(1).cos()); };
    const Tensor taken = at::rand({60}, chains.options()).log() < log_density(proposed) - log_density(chains);
    chains = at::where(taken.unsqueeze(1), proposed, chains);
    return taken.to(at::kFloat).mean();
  });
  for (int call = 0; call < 8; ++call) f();
}

void a_gaussian_process(Session& s) {
  auto f = s.compile([](const Tensor& x, const Tensor& y, const Tensor& at_points, double scale) {
    const auto kernel = [&](const Tensor& a, const Tensor& b) {
      return at::exp(-0.5 * (a.unsqueeze(1) - b.unsqueeze(0)).div(scale).square());
    };
    const Tensor factor = at::linalg_cholesky(kernel(x, x) + 0.1 * at::eye(x.size(0), x.options()));
    const Tensor weights = at::cholesky_solve(y.unsqueeze(1), factor);
    const Tensor cross = kernel(at_points, x);
    const Tensor half = at::linalg_solve_triangular(factor, cross.t(), false);
    return std::make_pair(cross.mm(weights).squeeze(1), 1 - half.square().sum(0));
  });
  for (int call = 0; call < 9; ++call) {
    f(s.randn({8}, at::kDouble), s.randn({8}, at::kDouble), s.randn({5}, at::kDouble), 0.5 + 0.1 * (call % 3));
  }
}

void a_mixture_fitted(Session& s) {
  Tensor means = s.randn({3, 2}), shares = at::full({3}, 1.0 / 3, s.options());
  s.watch("means", &means);
  auto f = s.compile([&](const Tensor& x) {
    const Tensor logs = shares.log() - 0.5 * (x.unsqueeze(1) - means).square().sum(-1);
    const Tensor total = logs.logsumexp(1, true);
    const Tensor belongs = (logs - total).exp();
    const Tensor mass = belongs.sum(0);
    means = belongs.t().mm(x) / mass.unsqueeze(1);
    shares = mass / x.size(0);
    return total.sum();
  });
  for (int call = 0; call < 8; ++call) f(s.randn({40, 2}));
}

void a_flow_that_couples_halves(Session& s) {
  const at::AutoGradMode grad(true);
  auto net = s.adopt(nn::Sequential(nn::Linear(2, 8), nn::ReLU(), nn::Linear(8, 4)));
  torch::optim::SGD optimizer(net->parameters(), 0.01);
  auto f = s.compile([&](const Tensor& x) {
    Tensor y = x, log_det = at::zeros({x.size(0)}, x.options());
    for (int layer = 0; layer < 2; ++layer) {
      const auto halves = y.split(2, 1);
      const auto change = net->forward(halves[0]).chunk(2, 1);
      const Tensor scale = at::tanh(change[0]);
      y = at::cat({halves[1] * scale.exp() + change[1], halves[0]}, 1);
      log_det = log_det + scale.sum(1);
    }
    const Tensor loss = (0.5 * y.square().sum(1) - log_det).mean();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    return std::make_pair(y.detach(), loss.detach());
  });
  for (int call = 0; call < 8; ++call) f(s.randn({6, 4}));
}

void draws_of_many_kinds(Session& s) {
  auto f = s.compile([](const Tensor& rates) {
    const Tensor counts = at::poisson(rates);
    const Tensor waits = at::empty_like(rates).exponential_(2.0);
    const Tensor normal = at::normal(rates, 0.5);
    const Tensor coins = at::bernoulli(at::sigmoid(rates));
    const Tensor other = at::empty_like(rates).log_normal_(0, 0.1).cauchy_(0, 1).clamp_(-3, 3);
    const Tensor order = at::randperm(rates.size(0), rates.options().dtype(at::kLong));
    return at::stack({counts, waits, normal, coins, other, rates.index_select(0, order)});
  });
  for (int call = 0; call < 8; ++call) f(s.randn({6}).abs() + 0.1);
}

void a_regression_with_beliefs(Session& s) {
  Tensor precision = at::eye(3, s.options(at::kDouble)), moment = at::zeros({3}, s.options(at::kDouble));
  s.watch("precision", &precision);
  auto f = s.compile([&](const Tensor& x, const Tensor& y) {
    precision.addmm_(x.t(), x);
    moment.addmv_(x.t(), y);
    const Tensor spread = at::cholesky_inverse(at::linalg_cholesky(precision));
    return std::make_tuple(spread.mv(moment), at::linalg_slogdet(precision), at::trace(spread));
  });
  for (int call = 0; call < 8; ++call) f(s.randn({4, 3}, at::kDouble), s.randn({4}, at::kDouble));
}

const Program programs[] = {
    {"a_variational_autoencoder", a_variational_autoencoder},
    {"a_hamiltonian_sampler", a_hamiltonian_sampler},
    {"a_random_walk_accepted_by_where", a_random_walk_accepted_by_where},
    {"a_gaussian_process", a_gaussian_process},
    {"a_mixture_fitted", a_mixture_fitted},
    {"a_flow_that_couples_halves", a_flow_that_couples_halves},
    {"draws_of_many_kinds", draws_of_many_kinds},
    {"a_regression_with_beliefs", a_regression_with_beliefs},
};

}  // namespace

std::span<const Program> inference_programs() { return programs; }

}  // namespace sinter::test::hostile
