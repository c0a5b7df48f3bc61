#include "groups.h"
#include "programs.h"

/// Calculations of sciences and trades around networks: solvers, codecs, rankings, schedules, statistics, layouts.
namespace sinter::test::hostile {
namespace {

using at::Tensor;
namespace nn = torch::nn;
using Tensors = std::vector<Tensor>;

void an_equation_solved_by_newton(Session& s) {
  const at::AutoGradMode grad(true);
  auto f = s.compile([](const Tensor& start) {
    Tensor x = start;
    for (int turn = 0; turn < 3; ++turn) {
      const Tensor at = x.detach().requires_grad_();
      const Tensor value = at.exp() + at.pow(3) - 2;
      const Tensor slope = torch::autograd::grad({value.sum()}, {at})[0];
      x = at.detach() - value.detach() / slope;
    }
    return x;
  });
  for (int call = 0; call < 8; ++call) f(s.randn({5}, at::kDouble) * 0.2 + 0.5);
}

void steps_of_runge_and_kutta(Session& s) {
  auto net = s.adopt(nn::Sequential(nn::Linear(2, 8), nn::Tanh(), nn::Linear(8, 2)));
  auto f = s.compile([&](Tensor x, double dt, int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) {
      const Tensor k1 = net->forward(x), k2 = net->forward(x + dt / 2 * k1);
      const Tensor k3 = net->forward(x + dt / 2 * k2), k4 = net->forward(x + dt * k3);
      x = x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
    }
    return x;
  });
  for (int call = 0; call < 9; ++call) f(s.randn({3, 2}), 0.1 / (1 + call % 3), 2);
}

/// The step size is the host's, by an error that it reads.
void steps_as_long_as_the_error_allows(Session& s) {
  double dt = 0.4;
  auto f = s.compile([&](Tensor x) {
    int64_t taken = 0;
    for (double t = 0; t < 1 && taken < 12; ++taken) {
      const Tensor slope = -2 * x, whole = x + dt * slope;
      const Tensor half = x + dt / 2 * slope, twice = half + dt / 2 * (-2 * half);
      const double error = (whole - twice).abs().max().item<double>();
      if (error < 0.125) {
        x = twice;
        t += dt;
      }
      dt *= error < 0.125 ? 1.25 : 0.5;
    }
    return x;
  });
  for (int call = 0; call < 8; ++call) f(at::full({4}, 1.0 + call % 2, s.options(at::kDouble)));
}

void a_transport_plan_by_scaling(Session& s) {
  auto f = s.compile([](const Tensor& a, const Tensor& b, const Tensor& cost) {
    const Tensor kernel = at::exp(-cost / 0.5);
    Tensor u = at::ones_like(a), v = at::ones_like(b);
    for (int turn = 0; turn < 8; ++turn) {
      u = a / kernel.mv(v);
      v = b / kernel.t().mv(u);
    }
    return u.unsqueeze(1) * kernel * v.unsqueeze(0);
  });
  for (int call = 0; call < 8; ++call) {
    f(at::softmax(s.randn({5}), 0), at::softmax(s.randn({4}), 0), s.randn({5, 4}).square());
  }
}

void components_of_a_table(Session& s) {
  auto f = s.compile([](const Tensor& x, int64_t kept) {
    const Tensor centred = x - x.mean(0, true);
    const auto [u, values, v] = at::linalg_svd(centred, false);
    const Tensor cut = v.slice(0, 0, kept);
    return std::make_pair(centred.mm(cut.t()).abs(), values.square() / (x.size(0) - 1));
  });
  for (int call = 0; call < 8; ++call) f(s.randn({12, 5}, at::kDouble), 2);
}

void a_classifier_by_neighbours(Session& s) {
  const Tensor known = s.randn({30, 4}), classes = s.integers(3, {30});
  auto f = s.compile([&](const Tensor& x) {
    const Tensor near = std::get<1>(at::cdist(x, known).topk(5, 1, false));
    const Tensor votes = at::one_hot(classes.index({near}), 3).sum(1);
    return std::make_pair(votes.argmax(1), votes.to(at::kFloat) / 5);
  });
  for (int call = 0; call < 8; ++call) f(s.randn({6, 4}));
}

void rankings_and_gains(Session& s) {
  auto f = s.compile([](const Tensor& scores, const Tensor& relevance) {
    const Tensor order = scores.argsort(1, /*descending=*/true);
    const Tensor gains = at::pow(2.0, relevance.gather(1, order).to(at::kFloat)) - 1;
    const Tensor discounts = at::log2(at::arange(2, scores.size(1) + 2, scores.options()));
    const Tensor ideal = (at::pow(2.0, std::get<0>(relevance.sort(1, true)).to(at::kFloat)) - 1) / discounts;
    return (gains / discounts).sum(1) / ideal.sum(1).clamp_min(1e-6);
  });
  for (int call = 0; call < 8; ++call) f(s.randn({3, 30}), s.integers(4, {3, 30}));
}

void confusions_counted(Session& s) {
  Tensor table = at::zeros({4, 4}, s.options(at::kLong));
  s.watch("table", &table);
  auto f = s.compile([&](const Tensor& scores, const Tensor& truth) {
    const Tensor cell = truth * 4 + scores.argmax(1);
    table.view({16}).index_add_(0, cell, at::ones_like(cell));
    const Tensor hits = table.diagonal().to(at::kFloat);
    const Tensor precision = hits / table.sum(0).clamp_min(1), recall = hits / table.sum(1).clamp_min(1);
    return std::make_pair(2 * precision * recall / (precision + recall).clamp_min(1e-9), hits.sum() / table.sum());
  });
  for (int call = 0; call < 8; ++call) f(s.randn({20, 4}), s.integers(4, {20}));
}

void blocks_of_an_image_in_frequencies(Session& s) {
  const Tensor angle = (2 * at::arange(8, s.options()) + 1).unsqueeze(0) * at::arange(8, s.options()).unsqueeze(1);
  const Tensor basis = at::cos(angle * (3.14159265 / 16)) * 0.5;
  const Tensor steps = 1 + at::arange(64, s.options()).view({8, 8}) / 4;
  auto f = s.compile([&](const Tensor& image) {
    const Tensor blocks = image.view({2, 8, 3, 8}).permute({0, 2, 1, 3});
    const Tensor parts = at::matmul(at::matmul(basis, blocks), basis.t());
    const Tensor codes = at::round(parts / steps).to(at::kShort);
    const Tensor back = at::matmul(at::matmul(basis.t(), codes * steps), basis);
    return std::make_pair((codes != 0).sum(), back.permute({0, 2, 1, 3}).reshape({16, 24}));
  });
  for (int call = 0; call < 8; ++call) f(s.randn({16, 24}) * 20);
}

void check_sums_of_bytes(Session& s) {
  auto f = s.compile([](const Tensor& bytes) {
    const Tensor wide = bytes.to(at::kLong);
    const Tensor a = (wide.cumsum(0) + 1).remainder(65521), b = a.cumsum(0).remainder(65521);
    const Tensor folded = wide.view({-1, 4}).select(1, 0).bitwise_xor(wide.view({-1, 4}).select(1, 3));
    return std::make_tuple(b[-1] * 65536 + a[-1], folded.sum(), at::bitwise_not(bytes));
  });
  for (int call = 0; call < 8; ++call) f(s.integers(256, {96}, at::kByte));
}

void halves_by_hand(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor bits = x.view(at::kInt);
    const Tensor exponent = at::bitwise_and(at::bitwise_right_shift(bits, 23), 0xff) - 127;
    const Tensor cut = at::bitwise_and(bits, ~0xffff).view(at::kFloat);
    return std::make_tuple(exponent, cut, x - cut, at::signbit(x), at::ldexp(x, exponent.clamp(-3, 3)));
  });
  for (int call = 0; call < 8; ++call) f(s.randn({70}));
}

void a_table_smoothed_by_neighbours(Session& s) {
  Tensor table = s.randn({6, 7});
  s.watch("table", &table);
  auto f = s.compile([&](double rate) {
    Tensor inner = table.slice(0, 1, -1).slice(1, 1, -1);
    const Tensor around = table.slice(0, 0, -2).slice(1, 1, -1) + table.slice(0, 2).slice(1, 1, -1) +
                          table.slice(0, 1, -1).slice(1, 0, -2) + table.slice(0, 1, -1).slice(1, 2);
    inner.lerp_(around / 4, rate);
    return (table - table.mean()).square().mean();
  });
  for (int call = 0; call < 9; ++call) f(0.1 + 0.05 * (call % 4));
}

void groups_of_experts_by_sorting(Session& s) {
  const Tensor experts = s.randn({3, 4, 5});
  auto f = s.compile([&](const Tensor& x, const Tensor& scores) {
    const Tensor who = scores.argmax(1);
    const auto [sorted, order] = who.sort(0);
    const Tensor weights = experts.index_select(0, sorted);
    const Tensor y = at::bmm(x.index_select(0, order).unsqueeze(1), weights).squeeze(1);
    return at::empty_like(y).index_copy_(0, order, y);
  });
  for (int call = 0; call < 8; ++call) f(s.randn({9, 4}), s.randn({9, 3}));
}

void attention_in_windows(Session& s) {
  const at::AutoGradMode grad(true);
  auto qkv = s.adopt(nn::Linear(6, 18));
  Tensor table = s.randn({9, 2}).requires_grad_();
  s.watch("table", &table);
  const Tensor place = at::arange(5, s.options(at::kLong));
  auto f = s.compile([&](const Tensor& x) {
    qkv->zero_grad();
    const Tensor windows = x.view({2, 2, 5, 6}).flatten(0, 1);
    const auto parts = qkv->forward(windows).view({4, 5, 3, 2, 3}).permute({2, 0, 3, 1, 4}).unbind(0);
    const Tensor apart = place.unsqueeze(1) - place.unsqueeze(0) + 4;
    const Tensor bias = table.index({apart}).permute({2, 0, 1}).unsqueeze(0);
    const Tensor y = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], bias);
    y.square().mean().backward();
    return y.detach().transpose(1, 2).reshape({2, 10, 6});
  });
  for (int call = 0; call < 8; ++call) f(s.randn({2, 10, 6}));
}

void a_branch_of_batches_by_mask(Session& s) {
  auto easy = s.adopt(nn::Linear(4, 3));
  auto hard = s.adopt(nn::Sequential(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 3)));
  auto f = s.compile([&](const Tensor& x) {
    const Tensor sure = at::softmax(easy->forward(x), -1).amax(-1) > 0.5;
    Tensor y = easy->forward(x);
    if (sure.all().item<bool>()) return y;
    return at::where(sure.unsqueeze(-1), y, hard->forward(x));
  });
  for (int call = 0; call < 8; ++call) f(s.randn({6, 4}));
}

void prices_of_a_grid_by_a_solver_of_bands(Session& s) {
  auto f = s.compile([](const Tensor& value) {
    const int64_t n = value.size(0);
    Tensor c = at::zeros({n}, value.options()), d = value.clone();
    c[0] = -0.25;
    for (int64_t i = 1; i < n; ++i) {
      const Tensor scale = 1 / (1.5 + 0.25 * c[i - 1]);
      c[i] = -0.25 * scale;
      d[i] = (d[i] + 0.25 * d[i - 1]) * scale;
    }
    for (int64_t i = n - 2; i >= 0; --i) d[i] -= c[i] * d[i + 1];
    return d;
  });
  for (int call = 0; call < 8; ++call) f(s.randn({6}, at::kDouble));
}

void slices_written_in_a_loop(Session& s) {
  auto f = s.compile([](const Tensor& x, int64_t width) {
    Tensor out = at::zeros({x.size(0), 12}, x.options());
    for (int64_t i = 0; i + width <= 12; i += width) {
      out.slice(1, i, i + width).copy_(x.slice(1, i, i + width) * static_cast<double>(i + 1));
    }
    return out;
  });
  for (int call = 0; call < 8; ++call) f(s.randn({2, 12}), call < 4 ? 3 : 4);
}

void a_plan_by_value_iteration(Session& s) {
  auto f = s.compile([](const Tensor& moves, const Tensor& rewards) {
    Tensor value = at::zeros({moves.size(1)}, moves.options());
    int64_t turns = 0;
    for (; turns < 40; ++turns) {
      const Tensor next = (rewards + 0.5 * at::matmul(moves, value)).amax(0);
      const double change = (next - value).abs().max().item<double>();
      value = next;
      if (change < 1e-3) break;
    }
    return std::make_pair(value, turns);
  });
  for (int call = 0; call < 8; ++call)
    f(at::softmax(s.randn({3, 5, 5}, at::kDouble), -1), s.randn({3, 5}, at::kDouble));
}

void a_filter_of_medians_and_outliers(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor middle = std::get<0>(at::pad(x.unsqueeze(0), {2, 2}, "reflect").unfold(1, 5, 1).median(2)).squeeze(0);
    const Tensor away = (x - middle).abs();
    const Tensor bound = 3 * std::get<0>(away.median(0)) + 1e-3;
    return std::make_pair(at::where(away > bound, middle, x), (away > bound).sum());
  });
  for (int call = 0; call < 8; ++call) f(s.randn({25}));
}

void weights_pruned_and_shared(Session& s) {
  auto layer = s.adopt(nn::Linear(6, 5));
  auto f = s.compile([&](const Tensor& x, double share) {
    const Tensor size = layer->weight.abs().flatten();
    const Tensor bound = std::get<0>(size.kthvalue(static_cast<int64_t>(share * static_cast<double>(size.numel()))));
    const Tensor kept = layer->weight * (layer->weight.abs() > bound);
    layer->weight.copy_(kept);
    return at::linear(x, kept, layer->bias);
  });
  for (int call = 0; call < 8; ++call) f(s.randn({3, 6}), call < 5 ? 0.25 : 0.5);
}

const Program programs[] = {
    {"an_equation_solved_by_newton", an_equation_solved_by_newton},
    {"steps_of_runge_and_kutta", steps_of_runge_and_kutta},
    {"steps_as_long_as_the_error_allows", steps_as_long_as_the_error_allows},
    {"a_transport_plan_by_scaling", a_transport_plan_by_scaling},
    {"components_of_a_table", components_of_a_table},
    {"a_classifier_by_neighbours", a_classifier_by_neighbours},
    {"rankings_and_gains", rankings_and_gains},
    {"confusions_counted", confusions_counted},
    {"blocks_of_an_image_in_frequencies", blocks_of_an_image_in_frequencies},
    {"check_sums_of_bytes", check_sums_of_bytes},
    {"halves_by_hand", halves_by_hand},
    {"a_table_smoothed_by_neighbours", a_table_smoothed_by_neighbours},
    {"groups_of_experts_by_sorting", groups_of_experts_by_sorting},
    {"attention_in_windows", attention_in_windows},
    {"a_branch_of_batches_by_mask", a_branch_of_batches_by_mask},
    {"prices_of_a_grid_by_a_solver_of_bands", prices_of_a_grid_by_a_solver_of_bands},
    {"slices_written_in_a_loop", slices_written_in_a_loop},
    {"a_plan_by_value_iteration", a_plan_by_value_iteration},
    {"a_filter_of_medians_and_outliers", a_filter_of_medians_and_outliers},
    {"weights_pruned_and_shared", weights_pruned_and_shared},
};

}  // namespace

std::span<const Program> workbench_programs() { return programs; }

}  // namespace sinter::test::hostile
