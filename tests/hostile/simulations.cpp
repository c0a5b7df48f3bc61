#include "groups.h"
#include "programs.h"

/// Worlds that go on from call to call: particles, fields, automata and games, their state written in place.
namespace sinter::test::hostile {
namespace {

using at::Tensor;

void bodies_that_attract_each_other(Session& s) {
  Tensor place = s.randn({10, 3}, at::kDouble), speed = at::zeros({10, 3}, s.options(at::kDouble));
  s.watch("place", &place);
  s.watch("speed", &speed);
  auto f = s.compile([&](double dt) {
    const Tensor away = place.unsqueeze(0) - place.unsqueeze(1);
    const Tensor near = (away.square().sum(-1) + 0.1).pow(-1.5);
    const Tensor pull = (away * near.unsqueeze(-1)).sum(1);
    speed += dt * pull;
    place += dt * speed;
    return 0.5 * speed.square().sum();
  });
  for (int call = 0; call < 8; ++call) f(call % 2 == 0 ? 0.01 : 0.02);
}

void a_game_of_life(Session& s) {
  Tensor board = (s.randn({1, 1, 12, 12}) > 0.3).to(at::kFloat);
  const Tensor around = at::ones({1, 1, 3, 3}, s.options());
  s.watch("board", &board);
  auto f = s.compile([&] {
    const Tensor wrapped = at::pad(board, {1, 1, 1, 1}, "circular");
    const Tensor neighbours = at::conv2d(wrapped, around) - board;
    board = ((neighbours == 3) | ((neighbours == 2) & (board > 0.5))).to(at::kFloat);
    return board.sum().to(at::kLong);
  });
  for (int call = 0; call < 10; ++call) f();
}

void a_game_of_life_in_bytes(Session& s) {
  Tensor board = s.integers(2, {16, 16}, at::kByte);
  s.watch("board", &board);
  auto f = s.compile([&] {
    Tensor count = at::zeros_like(board);
    for (int64_t dy = -1; dy <= 1; ++dy) {
      for (int64_t dx = -1; dx <= 1; ++dx) {
        if (dy != 0 || dx != 0) count += board.roll({dy, dx}, {0, 1});
      }
    }
    board.copy_(count.eq(3).bitwise_or(count.eq(2).bitwise_and(board.eq(1))));
    return board.any().item<bool>();
  });
  for (int call = 0; call < 9; ++call) f();
}

void a_rule_over_bits(Session& s) {
  Tensor cells = s.integers(1 << 30, {90}, at::kInt);
  s.watch("cells", &cells);
  auto f = s.compile([&](int64_t shift) {
    const Tensor left = at::bitwise_left_shift(cells, shift), right = at::bitwise_right_shift(cells, 1);
    cells = left ^ (cells | right);
    return (cells & 0xff).sum();
  });
  for (int call = 0; call < 8; ++call) f(1 + call / 4);
}

void random_numbers_by_hand(Session& s) {
  Tensor seeds = s.integers(1LL << 31, {100});
  s.watch("seeds", &seeds);
  auto f = s.compile([&] {
    seeds.mul_(1103515245).add_(12345).bitwise_and_(0x7fffffff);
    return seeds.to(at::kDouble) / 2147483648.0;
  });
  for (int call = 0; call < 8; ++call) f();
}

void a_flock(Session& s) {
  Tensor place = s.randn({30, 2}), speed = s.randn({30, 2});
  s.watch("place", &place);
  auto f = s.compile([&] {
    const Tensor distance = at::cdist(place, place);
    const auto [near, who] = distance.topk(6, -1, /*largest=*/false);
    const Tensor others = place.index({who.slice(1, 1)});
    const Tensor centre = others.mean(1) - place;
    const Tensor apart = (place.unsqueeze(1) - others).div(near.slice(1, 1).unsqueeze(-1) + 0.1).sum(1);
    speed = speed + 0.05 * centre + 0.01 * apart;
    speed = speed / speed.norm(2, {1}, true).clamp_min(1e-3);
    place = at::remainder(place + 0.1 * speed, 4);
    return place;
  });
  for (int call = 0; call < 4; ++call) f();
}

/// Springs between neighbours, moved through overlapping slices.
void a_cloth(Session& s) {
  Tensor place = s.counting({6, 5, 2}).mul(0.1), old = place.clone();
  s.watch("place", &place);
  auto f = s.compile([&](const Tensor& wind) {
    const Tensor moved = 2 * place - old + 0.01 * wind;
    old.copy_(place);
    place.copy_(moved);
    for (int turn = 0; turn < 2; ++turn) {
      Tensor a = place.slice(0, 0, -1), b = place.slice(0, 1);
      const Tensor away = b - a;
      const Tensor correction = 0.25 * away * (1 - 0.5 / (away.norm(2, {-1}, true) + 0.1));
      a.add_(correction);
      b.sub_(correction);
    }
    place.select(0, 0).copy_(old.select(0, 0));
  });
  for (int call = 0; call < 8; ++call) f(s.randn({2}));
}

void heat_in_a_plate(Session& s) {
  Tensor heat = s.randn({1, 1, 9, 9});
  s.watch("heat", &heat);
  auto f = s.compile([&](const std::string& edge, double conductance) {
    const Tensor padded =
        edge == "zero" ? at::constant_pad_nd(heat, {1, 1, 1, 1}, 0.0) : at::pad(heat, {1, 1, 1, 1}, edge);
    const Tensor up = padded.narrow(2, 0, 9).narrow(3, 1, 9), down = padded.narrow(2, 2, 9).narrow(3, 1, 9);
    const Tensor left = padded.narrow(2, 1, 9).narrow(3, 0, 9), right = padded.narrow(2, 1, 9).narrow(3, 2, 9);
    heat = heat + conductance * (up + down + left + right - 4 * heat);
    return heat.amax();
  });
  const char* edges[] = {"zero", "replicate", "reflect"};
  for (int call = 0; call < 12; ++call) f(std::string(edges[call / 4]), 0.1 + 0.01 * (call % 2));
}

void particles_in_cells(Session& s) {
  Tensor place = at::rand({70}, s.options()) * 8;
  s.watch("place", &place);
  auto f = s.compile([&] {
    const Tensor cell = place.floor().to(at::kLong).clamp(0, 7);
    const Tensor share = place - cell;
    Tensor charge = at::zeros({9}, place.options());
    charge.scatter_add_(0, cell, 1 - share).scatter_add_(0, cell + 1, share);
    const Tensor field = charge - charge.mean();
    place = at::remainder(place + 0.01 * field.gather(0, cell), 8);
    return charge;
  });
  for (int call = 0; call < 4; ++call) f();
}

/// Actors that join and leave; their number is the host's.
void actors_that_come_and_go(Session& s) {
  Tensor lives = at::full({3}, 5.0, s.options());
  s.watch("lives", &lives);
  int64_t tick = 0;
  auto f = s.compile([&](const Tensor& damage) {
    lives = lives - damage;
    lives = lives.index({lives > 0});
    if (++tick % 3 == 0) lives = at::cat({lives, at::full({2}, 4.0, lives.options())});
    return lives.size(0);
  });
  for (int call = 0; call < 12; ++call) f(at::full({}, 1.0 + call % 2, s.options()));
}

const Program programs[] = {
    {"bodies_that_attract_each_other", bodies_that_attract_each_other},
    {"a_game_of_life", a_game_of_life},
    {"a_game_of_life_in_bytes", a_game_of_life_in_bytes},
    {"a_rule_over_bits", a_rule_over_bits},
    {"random_numbers_by_hand", random_numbers_by_hand},
    {"a_flock", a_flock},
    {"a_cloth", a_cloth},
    {"heat_in_a_plate", heat_in_a_plate},
    {"particles_in_cells", particles_in_cells},
    {"actors_that_come_and_go", actors_that_come_and_go},
};

}  // namespace

std::span<const Program> simulation_programs() { return programs; }

}  // namespace sinter::test::hostile
