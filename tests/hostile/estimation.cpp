#include "groups.h"
#include "programs.h"

/// Filters, fits and controllers as robots run them: small systems of equations, state kept from call to call.
namespace sinter::test::hostile {
namespace {

using at::Tensor;

/// A matrix with eigenvalues from 1 on.
Tensor positive(Session& s, int64_t n) {
  const Tensor a = s.randn({n, n}, at::kDouble);
  return at::matmul(a, a.t()) + at::eye(n, a.options());
}

class Kalman {
 public:
  explicit Kalman(Session& s)
      : transition_(at::eye(4, s.options(at::kDouble))),
        observes_(at::eye(2, 4, s.options(at::kDouble))),
        noise_(0.1 * at::eye(2, s.options(at::kDouble))),
        mean_(at::zeros({4, 1}, s.options(at::kDouble))),
        spread_(at::eye(4, s.options(at::kDouble))) {
    transition_.diagonal(2).fill_(0.1);
  }
  Tensor step(const Tensor& seen) {
    mean_ = transition_.mm(mean_);
    spread_ = transition_.mm(spread_).mm(transition_.t()) + 0.01 * at::eye(4, spread_.options());
    const Tensor surprise = observes_.mm(spread_).mm(observes_.t()) + noise_;
    const Tensor gain = at::linalg_solve(surprise, observes_.mm(spread_)).t();
    mean_ = mean_ + gain.mm(seen - observes_.mm(mean_));
    spread_ = spread_ - gain.mm(observes_).mm(spread_);
    return mean_.squeeze(1);
  }
  const Tensor& spread() const { return spread_; }

 private:
  Tensor transition_, observes_, noise_, mean_, spread_;
};

void a_kalman_filter(Session& s) {
  Kalman filter(s);
  s.watch("spread", &filter.spread());
  auto f = s.compile([&](const Tensor& seen) { return filter.step(seen); });
  for (int call = 0; call < 10; ++call) f(s.randn({2, 1}, at::kDouble));
}

/// Measurements that are too far away are left out, by a number on the host.
void an_extended_kalman_filter_with_a_gate(Session& s) {
  Tensor pose = at::zeros({3}, s.options(at::kDouble));
  Tensor spread = at::eye(3, s.options(at::kDouble));
  s.watch("pose", &pose);
  auto f = s.compile([&](const Tensor& beacon, double range, double turn) {
    pose = pose + at::stack({0.1 * pose[2].cos(), 0.1 * pose[2].sin(), at::full({}, turn, pose.options())});
    const Tensor away = beacon - pose.slice(0, 0, 2);
    const Tensor distance = away.norm();
    const Tensor slope = at::cat({-away / distance, at::zeros({1}, away.options())}).unsqueeze(0);
    const Tensor spread_of_range = slope.mm(spread).mm(slope.t()) + 0.05;
    const Tensor surprise = range - distance;
    if ((surprise * surprise / spread_of_range).item<double>() > 25) return false;
    const Tensor gain = spread.mm(slope.t()) / spread_of_range;
    pose = pose + (gain * surprise).squeeze(1);
    spread = spread - gain.mm(slope).mm(spread);
    return true;
  });
  for (int call = 0; call < 12; ++call) f(at::full({2}, 4.0, pose.options()), call % 4 == 3 ? 90.0 : 5.0, 0.1 * call);
}

void particles_resampled(Session& s) {
  Tensor particles = s.randn({50, 2});
  Tensor weights = at::full({50}, 1.0 / 50, s.options());
  s.watch("particles", &particles);
  auto f = s.compile([&](const Tensor& seen) {
    particles = particles + 0.1 * at::randn_like(particles);
    weights = weights * at::exp(-(particles - seen).square().sum(1));
    weights = weights / weights.sum();
    const Tensor effective = 1 / weights.square().sum();
    if (effective.item<float>() < 25) {
      const Tensor places = (at::arange(50, weights.options()) + at::rand({1}, weights.options())) / 50;
      const Tensor chosen = at::searchsorted(weights.cumsum(0), places).clamp_max(49);
      particles = particles.index_select(0, chosen);
      weights = at::full_like(weights, 1.0 / 50);
    }
    return (particles * weights.unsqueeze(1)).sum(0);
  });
  for (int call = 0; call < 12; ++call) f(s.randn({2}) * 0.3);
}

void a_rigid_motion_fitted(Session& s) {
  auto f = s.compile([](const Tensor& from, const Tensor& to) {
    const Tensor a = from - from.mean(0), b = to - to.mean(0);
    const auto [u, values, v] = at::linalg_svd(a.t().mm(b), false);
    Tensor sign = at::ones({3}, a.options());
    sign[2] = at::linalg_det(u.mm(v)).sign();
    const Tensor rotation = u.mm(at::diag(sign)).mm(v).t();
    return std::make_tuple(rotation, to.mean(0) - rotation.mv(from.mean(0)));
  });
  for (int call = 0; call < 8; ++call) f(s.randn({12, 3}, at::kDouble), s.randn({12, 3}, at::kDouble));
}

void quaternions_integrated(Session& s) {
  Tensor q = at::tensor({1.0, 0.0, 0.0, 0.0}, at::kDouble).to(s.device());
  s.watch("q", &q);
  auto f = s.compile([&](const Tensor& rates, double dt) {
    const Tensor w = at::cat({at::zeros({1}, rates.options()), rates});
    const Tensor vector = q[0] * w.slice(0, 1) + w[0] * q.slice(0, 1) + at::linalg_cross(q.slice(0, 1), w.slice(0, 1));
    const Tensor product = at::cat({(q[0] * w[0] - q.slice(0, 1).dot(w.slice(0, 1))).unsqueeze(0), vector});
    q.add_(product, dt / 2);
    q.div_(q.norm());
    return q;
  });
  for (int call = 0; call < 9; ++call) f(s.randn({3}, at::kDouble), 0.01 * (1 + call % 3));
}

/// Until the end is near, as often as it takes.
void an_arm_that_reaches_for_a_point(Session& s) {
  auto f = s.compile([](const Tensor& goal) {
    Tensor angles = at::full({3}, 0.3, goal.options());
    int64_t steps = 0;
    for (; steps < 20; ++steps) {
      const Tensor sums = angles.cumsum(0);
      const Tensor end = at::stack({sums.cos().sum(), sums.sin().sum()});
      const Tensor away = goal - end;
      if (away.norm().item<double>() < 1e-3) break;
      const Tensor xs = -sums.sin().flip(0).cumsum(0).flip(0), ys = sums.cos().flip(0).cumsum(0).flip(0);
      const Tensor slope = at::stack({xs, ys});
      const Tensor damped = slope.mm(slope.t()) + 0.01 * at::eye(2, slope.options());
      angles = angles + slope.t().mv(at::linalg_solve(damped, away));
    }
    return std::make_pair(angles, steps);
  });
  for (int call = 0; call < 8; ++call) {
    f(at::tensor({1.5 + 0.1 * (call % 3), 1.0}, at::kDouble).to(s.device()));
  }
}

void a_regulator_by_backward_recursion(Session& s) {
  const Tensor a = at::eye(3, s.options(at::kDouble)) + 0.1 * s.randn({3, 3}, at::kDouble);
  const Tensor b = s.randn({3, 1}, at::kDouble);
  auto f = s.compile([&](const Tensor& cost, int64_t horizon) {
    Tensor value = cost;
    std::vector<Tensor> gains;
    for (int64_t t = 0; t < horizon; ++t) {
      const Tensor inner = at::eye(1, a.options()) + b.t().mm(value).mm(b);
      const Tensor gain = at::linalg_inv(inner).mm(b.t()).mm(value).mm(a);
      value = cost + a.t().mm(value).mm(a - b.mm(gain));
      gains.push_back(gain);
    }
    return at::cat(gains.empty() ? std::vector<Tensor>{b.t()} : gains);
  });
  for (int call = 0; call < 12; ++call) f(positive(s, 3), call < 4 ? 2 : call % 3);
}

void a_gaussian_drawn_by_its_factor(Session& s) {
  auto f = s.compile([](const Tensor& covariance, const Tensor& mean) {
    const Tensor factor = at::linalg_cholesky(covariance);
    const Tensor draw = mean + factor.mv(at::randn_like(mean));
    const Tensor whitened = at::linalg_solve_triangular(factor, (draw - mean).unsqueeze(1), /*upper=*/false);
    const Tensor log_density = -0.5 * whitened.square().sum() - factor.diagonal().log().sum();
    return std::make_pair(draw, log_density);
  });
  for (int call = 0; call < 8; ++call) f(positive(s, 5), s.randn({5}, at::kDouble));
}

/// A matrix that is not positive throws, and the filter goes on with what it had.
void a_factor_that_may_fail(Session& s) {
  Tensor last = at::eye(3, s.options(at::kDouble));
  s.watch("last", &last);
  auto f = s.compile([&](const Tensor& m, const Tensor& x) {
    const Tensor scaled = x * 2;
    try {
      last = at::linalg_cholesky(m);
    } catch (const c10::Error&) {
      return scaled.sum();
    }
    return last.mv(scaled).sum();
  });
  for (int call = 0; call < 10; ++call) {
    const Tensor m = positive(s, 3);
    f(call % 3 == 2 ? -m : m, s.randn({3}, at::kDouble));
  }
}

const Program programs[] = {
    {"a_kalman_filter", a_kalman_filter},
    {"an_extended_kalman_filter_with_a_gate", an_extended_kalman_filter_with_a_gate},
    {"particles_resampled", particles_resampled},
    {"a_rigid_motion_fitted", a_rigid_motion_fitted},
    {"quaternions_integrated", quaternions_integrated},
    {"an_arm_that_reaches_for_a_point", an_arm_that_reaches_for_a_point},
    {"a_regulator_by_backward_recursion", a_regulator_by_backward_recursion},
    {"a_gaussian_drawn_by_its_factor", a_gaussian_drawn_by_its_factor},
    {"a_factor_that_may_fail", a_factor_that_may_fail},
};

}  // namespace

std::span<const Program> estimation_programs() { return programs; }

}  // namespace sinter::test::hostile
