#include <limits>

#include "groups.h"
#include "programs.h"

/// Values at the edges of their types.
namespace sinter::test::hostile {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

Tensor edges(const Session& s, at::ScalarType dtype = at::kFloat) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return at::tensor({0.0, -0.0, 1.0, -1.0, infinity, -infinity, std::nan(""), 1e30, -1e-38, 0.5}).to(s.options(dtype));
}

void nan_infinity_and_signed_zero(Session& s) {
  auto f = s.compile(
      [](const Tensor& x) {
        return Tensors{at::relu(x),
                       at::maximum(x, x.flip(0)),
                       at::minimum(x, x.flip(0)),
                       x.clamp(-1, 1),
                       at::sign(x),
                       x * 0,
                       -x,
                       x.abs(),
                       at::where(x > 0, x, -x),
                       x == x,
                       at::fmax(x, x.flip(0)),
                       x.clamp_min(0),
                       at::hardtanh(x),
                       at::leaky_relu(x, 0.1),
                       x.round(),
                       x.trunc(),
                       at::isnan(x),
                       at::nan_to_num(x)};
      },
      {.numerics = Numerics::eager});
  for (int call = 0; call < 4; ++call) f(edges(s));
  for (int call = 0; call < 4; ++call) f(edges(s, at::kHalf));
}

void reductions_over_nan(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    return Tensors{x.max(), x.min(), x.amax(0), x.argmax(), x.argmin(), x.any(), std::get<0>(x.sort()), x.nansum()};
  });
  for (int call = 0; call < 4; ++call) f(edges(s));
}

void integers_that_overflow(Session& s) {
  auto f = s.compile([](const Tensor& a, const Tensor& b) {
    return Tensors{
        a + b,          a * b, a - 2 * b, -a, a.abs(), a.to(at::kLong) * 3, a.pow(3), at::bitwise_left_shift(a, 1),
        a.to(at::kByte)};
  });
  const Tensor a = at::tensor({127, -128, 100, -1, 0}, at::kInt).repeat({16}).to(s.options(at::kChar));
  for (int call = 0; call < 4; ++call) f(a, a.flip(0));
  const Tensor edges = at::tensor({2147483647, -2147483647 - 1, 65536, -1, 7}, at::kInt);
  const Tensor wide = edges.repeat({16}).to(s.options(at::kInt));
  for (int call = 0; call < 4; ++call) f(wide, wide.flip(0));
}

void division_of_integers(Session& s) {
  auto f = s.compile([](const Tensor& a, const Tensor& b) {
    return Tensors{a / b,          at::floor_divide(a, b), at::remainder(a, b),
                   at::fmod(a, b), at::div(a, b, "trunc"), at::div(a, b, "floor")};
  });
  const Tensor a = at::tensor({7, -7, 7, -7, 0}, at::kLong).to(s.device());
  for (int call = 0; call < 4; ++call) f(a, at::tensor({2, 2, -2, -2, 5}, at::kLong).to(s.device()));
}

void division_by_an_integer_zero(Session& s) {
  auto f = s.compile([](const Tensor& a, const Tensor& b) { return at::floor_divide(a, b); });
  const Tensor a = at::tensor({7, 8}, at::kLong);
  for (int call = 0; call < 3; ++call) f(a, at::tensor({2, 3}, at::kLong));
  f(a, at::tensor({2, 0}, at::kLong));
  for (int call = 0; call < 4; ++call) f(a, at::tensor({2, 3}, at::kLong));
}

void remainders_of_reals(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    return Tensors{x.remainder(0.75), at::fmod(x, 0.75), at::floor_divide(x, 0.3), x.frac(), x.pow(2),
                   x.pow(-1),         x.pow(0)};
  });
  for (int call = 0; call < 4; ++call) f(edges(s, at::kDouble));
}

void casts_out_of_range(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    return Tensors{x.to(at::kHalf), x.to(at::kBFloat16), x.to(at::kBool), x.to(at::kInt).to(at::kChar),
                   x.to(at::kDouble)};
  });
  const Tensor x = at::tensor({0.0, -0.0, 1e5, -70000.0, 300.7, -1.5, 1e-8, 65519.0}).to(s.options());
  for (int call = 0; call < 4; ++call) f(x);
}

void numbers_that_half_cannot_hold(Session& s) {
  auto f = s.compile([](const Tensor& x) { return Tensors{(x * 1000).sum(), (x * 60000 + 60000) * 0.5, x + 0.0004}; },
                     {.numerics = Numerics::eager});
  for (int call = 0; call < 4; ++call) f(at::ones({64}, s.options(at::kHalf)));
}

void booleans_in_arithmetic(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const Tensor b = x > 0;
    return Tensors{b + b, b * 3, b.sum(), b.to(at::kFloat).mean(), b & true, b ^ b.flip(0), ~b, b + 0.5, b.cumsum(0)};
  });
  for (int call = 0; call < 4; ++call) f(s.randn({6}));
}

void promotion_by_scalars_and_zero_dims(Session& s) {
  auto f = s.compile([](const Tensor& i, const Tensor& h, const Tensor& zero_dim) {
    return Tensors{
        i + 1, i + 1.5, h + 1.5, i * h, h * zero_dim, i * zero_dim, i / 2, h.pow(2), at::where(i > 1, i, 0.5)};
  });
  for (int call = 0; call < 4; ++call)
    f(s.integers(4, {3}, at::kInt), s.randn({3}, at::kHalf), s.randn({}, at::kDouble));
}

void a_large_view_in_index_arithmetic(Session& s) {
  const Tensor wide = s.randn({1, 1}).expand({70000, 50000});  // more than 2^31 elements over one number
  auto f = s.compile([&wide](const Tensor& x) {
    return Tensors{wide.slice(0, 69999).slice(1, 49990) * x, wide.select(0, 69999).slice(0, 49999) + x};
  });
  for (int call = 0; call < 5; ++call) f(s.randn({1}));
}

void indices_that_are_negative(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    return Tensors{x.index({at::tensor({-1, 0, -2}).to(x.device())}),
                   x.select(0, -1),
                   x.slice(0, -2),
                   x.transpose(-1, -2),
                   x.sum(-1),
                   x.roll(-1, 0),
                   x.narrow(0, -2, 2)};
  });
  for (int call = 0; call < 4; ++call) f(s.randn({4, 3}));
}

void differences_both_ways(Session& s) {
  auto f =
      s.compile([](const Tensor& x, const Tensor& y) { return Tensors{x - y, y - x, x - 2, 2 - x, x / y, 2 / x}; });
  for (int call = 0; call < 4; ++call) f(s.randn({7}), s.randn({7}));
}

const Program programs[] = {
    {"nan_infinity_and_signed_zero", nan_infinity_and_signed_zero},
    {"differences_both_ways", differences_both_ways},
    {"reductions_over_nan", reductions_over_nan},
    {"integers_that_overflow", integers_that_overflow},
    {"division_of_integers", division_of_integers},
    {"division_by_an_integer_zero", division_by_an_integer_zero},
    {"remainders_of_reals", remainders_of_reals},
    {"casts_out_of_range", casts_out_of_range},
    {"numbers_that_half_cannot_hold", numbers_that_half_cannot_hold},
    {"booleans_in_arithmetic", booleans_in_arithmetic},
    {"promotion_by_scalars_and_zero_dims", promotion_by_scalars_and_zero_dims},
    {"a_large_view_in_index_arithmetic", a_large_view_in_index_arithmetic},
    {"indices_that_are_negative", indices_that_are_negative},
};

}  // namespace

std::span<const Program> number_programs() { return programs; }

}  // namespace sinter::test::hostile
