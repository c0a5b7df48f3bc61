#include "groups.h"
#include "programs.h"

/// Prices, risks and books: formulas over vectors, simulated paths, sums in integers.
namespace sinter::test::hostile {
namespace {

using at::Tensor;

Tensor normal_cdf(const Tensor& x) { return 0.5 * (1 + at::erf(x / std::sqrt(2.0))); }

void options_priced_by_formula(Session& s) {
  auto f = s.compile([](const Tensor& spot, const Tensor& strike, double rate, double volatility, double years) {
    const double spread = volatility * std::sqrt(years);
    const Tensor d1 = ((spot / strike).log() + (rate + volatility * volatility / 2) * years) / spread;
    const Tensor d2 = d1 - spread;
    const Tensor call = spot * normal_cdf(d1) - strike * std::exp(-rate * years) * normal_cdf(d2);
    return std::map<std::string, Tensor>{{"price", call}, {"delta", normal_cdf(d1)}};
  });
  for (int call = 0; call < 9; ++call) {
    f(100 + s.randn({7}, at::kDouble), at::full({7}, 95.0, s.options(at::kDouble)), 0.01 * (call % 4), 0.2, 1.0);
  }
}

/// The derivative of the price by the inputs, taken inside.
void greeks_by_differentiation(Session& s) {
  const at::AutoGradMode grad(true);
  auto f = s.compile([](const Tensor& spot, const Tensor& volatility) {
    const Tensor a = spot.detach().requires_grad_(), b = volatility.detach().requires_grad_();
    const Tensor d1 = ((a / 100).log() + b * b / 2) / b;
    const Tensor price = a * normal_cdf(d1) - 100 * normal_cdf(d1 - b);
    auto first = torch::autograd::grad({price.sum()}, {a, b}, {}, true, true);
    auto second = torch::autograd::grad({first[0].sum()}, {a});
    return std::vector<Tensor>{price.detach(), first[0].detach(), first[1].detach(), second[0]};
  });
  for (int call = 0; call < 8; ++call)
    f(100 + s.randn({5}, at::kDouble), 0.2 + 0.1 * at::rand({5}, s.options(at::kDouble)));
}

void paths_simulated(Session& s) {
  auto f = s.compile([&](const Tensor& start, int64_t steps) {
    const Tensor shocks = at::randn({steps, 200}, start.options());
    const Tensor paths = start * at::exp((0.01 * shocks - 0.00005).cumsum(0));
    const Tensor payoff = at::relu(paths.mean(0) - start);
    const Tensor barrier = (paths.amax(0) < 1.1 * start).to(at::kFloat);
    return std::make_tuple((payoff * barrier).mean(), payoff.std(), at::quantile(paths[-1], 0.05));
  });
  for (int call = 0; call < 8; ++call) f(at::full({}, 50.0 + call, s.options()), 20);
}

void an_option_exercised_early_by_regression(Session& s) {
  const Tensor shocks = s.randn({4, 60}, at::kDouble);
  auto f = s.compile([&](const Tensor& strike) {
    const Tensor paths = at::exp((0.1 * shocks).cumsum(0));
    Tensor cash = at::relu(strike - paths[3]);
    for (int64_t t = 2; t >= 0; --t) {
      const Tensor x = paths[t];
      const Tensor basis = at::stack({at::ones_like(x), x, x * x}, 1);
      const auto fit = at::linalg_solve(basis.t().mm(basis), basis.t().mv(0.99 * cash));
      const Tensor now = at::relu(strike - x);
      cash = at::where(now > basis.mv(fit), now, 0.99 * cash);
    }
    return cash.mean();
  });
  for (int call = 0; call < 8; ++call) f(at::full({}, 1.0 + 0.01 * call, s.options(at::kDouble)));
}

void a_volatility_that_remembers(Session& s) {
  auto f = s.compile([](const Tensor& returns) {
    Tensor variance = returns.var();
    std::vector<Tensor> all;
    for (int64_t t = 0; t < returns.size(0); ++t) {
      variance = 0.1 + 0.1 * returns[t].square() + 0.8 * variance;
      all.push_back(variance);
    }
    return at::stack(all);
  });
  for (int call = 0; call < 8; ++call) f(s.randn({12}));
}

void a_portfolio_of_least_variance(Session& s) {
  auto f = s.compile([](const Tensor& returns) {
    const Tensor covariance = at::cov(returns.t()) + 0.1 * at::eye(returns.size(1), returns.options());
    const Tensor ones = at::ones({returns.size(1), 1}, returns.options());
    const Tensor raw = at::cholesky_solve(ones, at::linalg_cholesky(covariance));
    const auto [values, vectors] = at::linalg_eigh(covariance);
    return std::make_tuple((raw / raw.sum()).squeeze(1), values, at::corrcoef(returns.t()));
  });
  for (int call = 0; call < 8; ++call) f(s.randn({30, 4}, at::kDouble));
}

void averages_and_drawdowns_of_a_series(Session& s) {
  auto f = s.compile([](const Tensor& prices, int64_t window) {
    const Tensor average = prices.unfold(0, window, 1).mean(1);
    const Tensor top = std::get<0>(at::cummax(prices, 0));
    const Tensor drawdown = 1 - prices / top;
    const Tensor returns = at::diff(prices.log());
    return std::make_tuple(average, drawdown.max(), returns.std(), at::nan_to_num(returns / returns.abs()));
  });
  for (int call = 0; call < 14; ++call) {
    f(100 + s.randn({20 + (call < 3 ? 0 : call % 3)}).cumsum(0), call < 7 ? 3 : 3 + call % 2);
  }
}

/// Cents in integers, rounded to even as banks do.
void a_book_in_cents(Session& s) {
  Tensor balances = s.integers(100000, {80});
  s.watch("balances", &balances);
  auto f = s.compile([&](const Tensor& from, const Tensor& to, const Tensor& cents) {
    balances.index_add_(0, from, cents, -1);
    balances.index_add_(0, to, cents);
    const Tensor fee = at::div(cents * 25 + 5000, 10000, "floor");
    balances.index_add_(0, from, -fee);
    return std::make_pair(balances.sum(), (balances < 0).sum());
  });
  for (int call = 0; call < 8; ++call) f(s.integers(80, {90}), s.integers(80, {90}), s.integers(5000, {90}));
}

void rates_looked_up_between_dates(Session& s) {
  const Tensor days = at::tensor({0, 30, 90, 180, 365, 730}, at::kFloat).to(s.device());
  const Tensor rates = s.randn({6}).abs() * 0.01;
  auto f = s.compile([&](const Tensor& when) {
    const Tensor right = at::bucketize(when, days).clamp(1, 5);
    const Tensor left = right - 1;
    const Tensor share = (when - days.index({left})) / (days.index({right}) - days.index({left}));
    const Tensor rate = at::lerp(rates.index({left}), rates.index({right}), share);
    return at::exp(-rate * when / 365);
  });
  for (int call = 0; call < 8; ++call) f(at::clamp(s.randn({9}).abs() * 200, 0, 730));
}

const Program programs[] = {
    {"options_priced_by_formula", options_priced_by_formula},
    {"greeks_by_differentiation", greeks_by_differentiation},
    {"paths_simulated", paths_simulated},
    {"an_option_exercised_early_by_regression", an_option_exercised_early_by_regression},
    {"a_volatility_that_remembers", a_volatility_that_remembers},
    {"a_portfolio_of_least_variance", a_portfolio_of_least_variance},
    {"averages_and_drawdowns_of_a_series", averages_and_drawdowns_of_a_series},
    {"a_book_in_cents", a_book_in_cents},
    {"rates_looked_up_between_dates", rates_looked_up_between_dates},
};

}  // namespace

std::span<const Program> finance_programs() { return programs; }

}  // namespace sinter::test::hostile
