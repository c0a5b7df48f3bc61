#include "groups.h"
#include "programs.h"

/// Learning without networks: regressions, chains, votes, factors, grids, as they are written with tensors.
namespace sinter::test::hostile {
namespace {

using at::Tensor;

void a_line_fitted(Session& s) {
  auto f = s.compile([](const Tensor& x, const Tensor& y, double ridge) {
    const Tensor rows = at::cat({x, at::ones({x.size(0), 1}, x.options())}, 1);
    const Tensor left = rows.t().mm(rows) + ridge * at::eye(rows.size(1), x.options());
    const Tensor w = at::linalg_solve(left, rows.t().mv(y));
    return std::make_pair(w, 1 - (y - rows.mv(w)).square().sum() / (y - y.mean()).square().sum());
  });
  for (int call = 0; call < 8; ++call)
    f(s.randn({10, 3}, at::kDouble), s.randn({10}, at::kDouble), 0.1 * (1 + call % 3));
}

void a_logistic_regression_by_newton(Session& s) {
  Tensor w = at::zeros({3}, s.options(at::kDouble));
  s.watch("w", &w);
  auto f = s.compile([&](const Tensor& x, const Tensor& y) {
    const Tensor p = at::sigmoid(x.mv(w));
    const Tensor slope = x.t().mv(p - y);
    const Tensor bend = (x * (p * (1 - p)).unsqueeze(1)).t().mm(x) + at::eye(3, x.options());
    w.sub_(at::linalg_solve(bend, slope));
    return -(y * p.log() + (1 - y) * at::log1p(-p)).mean();
  });
  for (int call = 0; call < 8; ++call) {
    f(s.randn({12, 3}, at::kDouble), (s.randn({12}, at::kDouble) > 0).to(at::kDouble));
  }
}

void words_counted_by_class(Session& s) {
  Tensor counts = at::ones({3, 20}, s.options());
  s.watch("counts", &counts);
  auto f = s.compile([&](const Tensor& documents, const Tensor& classes) {
    const Tensor logs = (counts / counts.sum(1, true)).log();
    const Tensor guess = at::matmul(documents.to(at::kFloat), logs.t()).argmax(1);
    counts.index_add_(0, classes, documents.to(at::kFloat));
    return guess;
  });
  for (int call = 0; call < 8; ++call) f(s.integers(4, {5, 20}), s.integers(3, {5}));
}

void weak_learners_weighted(Session& s) {
  Tensor weights = at::full({16}, 1.0 / 16, s.options(at::kDouble));
  s.watch("weights", &weights);
  auto f = s.compile([&](const Tensor& x, const Tensor& y) {
    const Tensor guess = at::where(x.unsqueeze(0) > x.unsqueeze(1), 1.0, -1.0).to(at::kDouble);
    const Tensor errors = ((guess != y) * weights).sum(1);
    const auto [error, best] = errors.min(0);
    const Tensor trust = 0.5 * at::log((1 - error) / error.clamp_min(1e-3));
    weights = weights * at::exp(-trust * y * guess.index_select(0, best.unsqueeze(0)).squeeze(0));
    weights = weights / weights.sum();
    return std::make_pair(trust, best);
  });
  for (int call = 0; call < 8; ++call) f(s.randn({16}, at::kDouble), s.randn({16}, at::kDouble).sign());
}

void a_chain_of_hidden_states(Session& s) {
  const Tensor moves = at::log_softmax(s.randn({4, 4}), 1), shows = at::log_softmax(s.randn({4, 6}), 1);
  auto f = s.compile([&](const Tensor& seen) {
    Tensor sum = shows.index_select(1, seen.slice(0, 0, 1)).squeeze(1), best = sum;
    std::vector<Tensor> back;
    for (int64_t t = 1; t < seen.size(0); ++t) {
      const Tensor now = shows.index_select(1, seen.slice(0, t, t + 1)).squeeze(1);
      sum = at::logsumexp(sum.unsqueeze(1) + moves, at::IntArrayRef{0}) + now;
      const auto [score, from] = (best.unsqueeze(1) + moves).max(0);
      best = score + now;
      back.push_back(from);
    }
    Tensor state = best.argmax();
    std::vector<Tensor> path{state};
    for (size_t i = back.size(); i-- > 0;) path.push_back(state = back[i].gather(0, state.unsqueeze(0)).squeeze(0));
    return std::make_pair(sum.logsumexp(0), at::stack(path).flip(0));
  });
  for (int call = 0; call < 8; ++call) f(s.integers(6, {5}));
}

void ratings_as_products_of_factors(Session& s) {
  Tensor users = s.randn({9, 4}), items = s.randn({11, 4});
  s.watch("users", &users);
  s.watch("items", &items);
  auto f = s.compile([&](const Tensor& who, const Tensor& what, const Tensor& stars) {
    const Tensor u = users.index({who}), v = items.index({what});
    const Tensor error = stars - (u * v).sum(1);
    users.index_add_(0, who, 0.05 * (error.unsqueeze(1) * v - 0.1 * u));
    items.index_add_(0, what, 0.05 * (error.unsqueeze(1) * u - 0.1 * v));
    return error.square().mean().sqrt();
  });
  for (int call = 0; call < 8; ++call) f(s.integers(9, {12}), s.integers(11, {12}), s.randn({12}));
}

void spins_that_flip(Session& s) {
  Tensor spins = s.randn({8, 8}).sign();
  const Tensor board =
      (at::arange(8, s.options(at::kLong)).unsqueeze(0) + at::arange(8, s.options(at::kLong)).unsqueeze(1))
          .remainder(2)
          .to(at::kBool);
  s.watch("spins", &spins);
  auto f = s.compile([&](double heat) {
    for (const Tensor& half : {board, board.logical_not()}) {
      const Tensor around = spins.roll(1, 0) + spins.roll(-1, 0) + spins.roll(1, 1) + spins.roll(-1, 1);
      const Tensor flips = (at::rand_like(spins) < at::exp(-2 * spins * around / heat)).logical_and(half);
      spins = at::where(flips, -spins, spins);
    }
    return spins.mean();
  });
  for (int call = 0; call < 9; ++call) f(1.5 + 0.25 * (call % 3));
}

void a_map_that_organises_itself(Session& s) {
  Tensor map = s.randn({4, 4, 3});
  s.watch("map", &map);
  int64_t step = 0;
  const Tensor line = at::arange(4, s.options());
  auto f = s.compile([&](const Tensor& x) {
    const double rate = 0.5 / static_cast<double>(1 + step++);
    const Tensor best = (map - x).square().sum(-1).flatten().argmin();
    const Tensor row = best.div(4, "floor"), column = best.remainder(4);
    const Tensor apart = (line.unsqueeze(1) - row).square() + (line.unsqueeze(0) - column).square();
    map.add_((at::exp(-apart / 2) * rate).unsqueeze(-1) * (x - map));
    return best;
  });
  for (int call = 0; call < 8; ++call) f(s.randn({3}));
}

void lines_found_by_votes(Session& s) {
  const Tensor angle = at::arange(12, s.options()) * (3.14159265 / 12);
  auto f = s.compile([&](const Tensor& points) {
    const Tensor distance =
        points.select(1, 0).unsqueeze(1) * angle.cos() + points.select(1, 1).unsqueeze(1) * angle.sin();
    const Tensor bin = (distance + 16.5).to(at::kLong).clamp(0, 32);
    const Tensor cell = bin * 12 + at::arange(12, bin.options());
    const Tensor votes = at::zeros({33 * 12}, points.options())
                             .index_add_(0, cell.flatten(), at::ones({cell.numel()}, points.options()));
    return votes.view({33, 12}).topk(2, 0);
  });
  for (int call = 0; call < 8; ++call) f(s.integers(10, {9, 2}, at::kFloat) + 0.25);
}

void sums_over_boxes(Session& s) {
  auto f = s.compile([](const Tensor& image, int64_t reach) {
    const Tensor sums = at::constant_pad_nd(image.cumsum(0).cumsum(1), {1, 0, 1, 0}, 0);
    const int64_t h = image.size(0) - reach, w = image.size(1) - reach;
    return sums.slice(0, reach, reach + h).slice(1, reach, reach + w) - sums.slice(0, 0, h).slice(1, reach, reach + w) -
           sums.slice(0, reach, reach + h).slice(1, 0, w) + sums.slice(0, 0, h).slice(1, 0, w);
  });
  for (int call = 0; call < 10; ++call) f(s.integers(9, {8, 9}, at::kDouble), call < 5 ? 3 : 2);
}

void islands_counted(Session& s) {
  auto f = s.compile([](const Tensor& land) {
    const Tensor mask = land.to(at::kFloat).view({1, 1, 6, 6});
    Tensor label = at::arange(1, 37, mask.options()).view({1, 1, 6, 6}) * mask;
    for (int turn = 0; turn < 36; ++turn) {
      const Tensor next = at::max_pool2d(label, 3, 1, 1) * mask;
      const bool settled = at::equal(next, label);
      label = next;
      if (settled) break;
    }
    return label;
  });
  for (int call = 0; call < 8; ++call) f(s.randn({6, 6}) > 0.3);
}

void a_system_by_relaxation(Session& s) {
  auto f = s.compile([](const Tensor& a, const Tensor& b) {
    const Tensor diagonal = a.diagonal(), rest = a - at::diag(diagonal);
    Tensor x = at::zeros_like(b);
    int64_t turns = 0;
    do {
      x = 0.5 * x + 0.5 * (b - rest.mv(x)) / diagonal;
    } while (++turns < 30 && (a.mv(x) - b).norm().item<double>() > 1e-3);
    return std::make_pair(x, turns);
  });
  for (int call = 0; call < 8; ++call)
    f(s.randn({5, 5}, at::kDouble) * 0.1 + at::eye(5, s.options(at::kDouble)) * 2, s.randn({5}, at::kDouble));
}

void keys_hashed_into_bits(Session& s) {
  Tensor filter = at::zeros({128}, s.options(at::kBool));
  s.watch("filter", &filter);
  auto f = s.compile([&](const Tensor& keys) {
    const Tensor first = (keys * 2654435761).bitwise_right_shift(7).remainder(128);
    const Tensor second = keys.bitwise_xor(0x5bd1e995).mul(97).remainder(128);
    const Tensor known = filter.index({first}).logical_and(filter.index({second}));
    filter.index_fill_(0, at::cat({first, second}), true);
    return known;
  });
  for (int call = 0; call < 8; ++call) f(s.integers(50, {6}));
}

void a_series_smoothed_in_three_ways(Session& s) {
  Tensor level = at::zeros({4}, s.options()), trend = at::zeros({4}, s.options()),
         season = at::zeros({3, 4}, s.options());
  s.watch("level", &level);
  s.watch("season", &season);
  int64_t t = 0;
  auto f = s.compile([&](const Tensor& x) {
    const Tensor old = level.clone();
    Tensor now = season.select(0, t % 3);
    level = 0.3 * (x - now) + 0.7 * (level + trend);
    trend = 0.1 * (level - old) + 0.9 * trend;
    now.mul_(0.8).add_(x - level, 0.2);
    ++t;
    return level + trend + season.select(0, t % 3);
  });
  for (int call = 0; call < 12; ++call) f(s.randn({4}));
}

const Program programs[] = {
    {"a_line_fitted", a_line_fitted},
    {"a_logistic_regression_by_newton", a_logistic_regression_by_newton},
    {"words_counted_by_class", words_counted_by_class},
    {"weak_learners_weighted", weak_learners_weighted},
    {"a_chain_of_hidden_states", a_chain_of_hidden_states},
    {"ratings_as_products_of_factors", ratings_as_products_of_factors},
    {"spins_that_flip", spins_that_flip},
    {"a_map_that_organises_itself", a_map_that_organises_itself},
    {"lines_found_by_votes", lines_found_by_votes},
    {"sums_over_boxes", sums_over_boxes},
    {"islands_counted", islands_counted},
    {"a_system_by_relaxation", a_system_by_relaxation},
    {"keys_hashed_into_bits", keys_hashed_into_bits},
    {"a_series_smoothed_in_three_ways", a_series_smoothed_in_three_ways},
};

}  // namespace

std::span<const Program> classic_programs() { return programs; }

}  // namespace sinter::test::hostile
