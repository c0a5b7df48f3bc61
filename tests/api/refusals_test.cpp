#include <ATen/ATen.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "api_test.h"

/// Operators that refuse data, not types: eager throws wherever they stand and whoever reads their result, and so does
/// compiled code. On a GPU the device checks, and throws nothing.
namespace sinter::test {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

/// A call of an operator on data it takes, and with other data in place of the last operand that it refuses.
struct Refusal {
  const char* name;
  std::function<Tensor(const Tensors&)> call;
  Tensors good;
  Tensor bad;

  [[nodiscard]] Tensors refused() const {
    Tensors data = good;
    data.back() = bad;
    return data;
  }
};

Tensor longs(const std::vector<int64_t>& values) { return at::tensor(values); }
Tensor floats(const std::vector<float>& values) { return at::tensor(values); }

std::vector<Refusal> refusals() {
  const Tensor three = floats({1, 2, 3}), four = floats({1, 2, 3, 4});
  const Tensor logits = at::arange(12, at::kFloat).view({4, 3}) / 12;
  const Tensor image = at::arange(4, at::kFloat).view({1, 1, 2, 2});
  const Tensor square = floats({4, 1, 1, 3}).view({2, 2});
  const auto corners = [](int64_t last) { return longs({0, 2, 8, last}).view({1, 1, 2, 2}); };
  return {
      {"floor_divide",
       [](const Tensors& t) { return at::floor_divide(t[0], t[1]); },
       {longs({7, 8}), longs({2, 3})},
       longs({2, 0})},
      {"div_trunc",
       [](const Tensors& t) { return at::div(t[0], t[1], "trunc"); },
       {longs({7, 8}), longs({2, 3})},
       longs({2, 0})},
      {"remainder",
       [](const Tensors& t) { return at::remainder(t[0], t[1]); },
       {longs({7, 8}), longs({2, 3})},
       longs({2, 0})},
      {"fmod", [](const Tensors& t) { return at::fmod(t[0], t[1]); }, {longs({7, 8}), longs({2, 3})}, longs({2, 0})},
      {"index_select",
       [](const Tensors& t) { return at::index_select(t[0], 0, t[1]); },
       {three, longs({0, 2})},
       longs({0, 3})},
      {"index", [](const Tensors& t) { return at::index(t[0], {t[1]}); }, {three, longs({0, 2})}, longs({0, 3})},
      {"index_put",
       [](const Tensors& t) { return at::index_put(t[0], {t[1]}, at::zeros({})); },
       {three, longs({0, 2})},
       longs({0, 3})},
      {"index_add",
       [](const Tensors& t) { return at::index_add(t[0], 0, t[1], t[0].narrow(0, 0, 2)); },
       {three, longs({0, 2})},
       longs({0, 3})},
      {"index_copy",
       [](const Tensors& t) { return at::index_copy(t[0], 0, t[1], t[0].narrow(0, 0, 2)); },
       {three, longs({0, 2})},
       longs({0, 3})},
      {"index_fill",
       [](const Tensors& t) { return at::index_fill(t[0], 0, t[1], 5); },
       {three, longs({0, 2})},
       longs({0, 3})},
      {"index_reduce",
       [](const Tensors& t) { return at::index_reduce(t[0], 0, t[1], t[0].narrow(0, 0, 2), "amax"); },
       {three, longs({0, 2})},
       longs({0, 3})},
      {"gather", [](const Tensors& t) { return at::gather(t[0], 0, t[1]); }, {three, longs({0, 2})}, longs({0, 3})},
      {"take", [](const Tensors& t) { return at::take(t[0], t[1]); }, {three, longs({0, 2})}, longs({0, 3})},
      {"put",
       [](const Tensors& t) { return at::put(t[0], t[1], t[0].narrow(0, 0, 2)); },
       {three, longs({0, 2})},
       longs({0, 3})},
      {"scatter",
       [](const Tensors& t) { return at::scatter(t[0], 0, t[1], 5); },
       {three, longs({0, 2})},
       longs({0, 3})},
      {"scatter_add",
       [](const Tensors& t) { return at::scatter_add(t[0], 0, t[1], t[0]); },
       {three, longs({0, 2})},
       longs({0, 3})},
      {"scatter_reduce",
       [](const Tensors& t) { return at::scatter_reduce(t[0], 0, t[1], t[0], "sum"); },
       {three, longs({0, 2})},
       longs({0, 3})},
      {"masked_scatter",
       [](const Tensors& t) { return at::masked_scatter(t[0], t[1], t[0].narrow(0, 0, 2)); },
       {three, longs({1, 0, 1}).to(at::kBool)},
       at::ones({3}, at::kBool)},
      {"embedding", [](const Tensors& t) { return at::embedding(t[0], t[1]); }, {logits, longs({0, 3})}, longs({0, 4})},
      {"embedding_bag",
       [](const Tensors& t) { return std::get<0>(at::embedding_bag(t[0], longs({0, 1, 2}), t[1])); },
       {logits, longs({0, 2})},
       longs({0, 4})},
      {"one_hot", [](const Tensors& t) { return at::one_hot(t[0], 3); }, {longs({0, 2})}, longs({0, 3})},
      {"nll_loss",
       [](const Tensors& t) { return at::nll_loss(t[0], t[1]); },
       {logits, longs({0, 1, 2, 0})},
       longs({0, 1, 2, 3})},
      {"cross_entropy_loss",
       [](const Tensors& t) { return at::cross_entropy_loss(t[0], t[1]); },
       {logits, longs({0, 1, 2, 0})},
       longs({0, 1, 2, 3})},
      {"multi_margin_loss",
       [](const Tensors& t) { return at::multi_margin_loss(t[0], t[1]); },
       {logits, longs({0, 1, 2, 0})},
       longs({0, 1, 2, 3})},
      {"multilabel_margin_loss",
       [](const Tensors& t) { return at::multilabel_margin_loss(t[0], t[1]); },
       {three, longs({0, 2, -1})},
       longs({0, 3, -1})},
      {"binary_cross_entropy",
       [](const Tensors& t) { return at::binary_cross_entropy(t[1], t[0]); },
       {floats({0, 1}), floats({0.25, 0.5})},
       floats({0.25, 1.5})},
      {"max_unpool2d",
       [](const Tensors& t) { return at::max_unpool2d(t[0], t[1], {3, 3}); },
       {image, corners(6)},
       corners(9)},
      {"repeat_interleave",
       [](const Tensors& t) { return at::repeat_interleave(t[0], t[1], 0, 6); },
       {three, longs({1, 2, 3})},
       longs({1, 2, -3})},
      {"bincount", [](const Tensors& t) { return at::bincount(t[0]); }, {longs({1, 2})}, longs({1, -2})},
      {"histc",
       [](const Tensors& t) { return at::histc(t[0], 4); },
       {three},
       floats({1, 2, std::numeric_limits<float>::infinity()})},
      {"searchsorted",
       [](const Tensors& t) { return at::searchsorted(t[0], at::ones({}), false, false, {}, t[1]); },
       {three, longs({0, 1, 2})},
       longs({0, 1, 3})},
      {"segment_reduce",
       [](const Tensors& t) { return at::segment_reduce(t[0], "sum", t[1]); },
       {four, longs({1, 3})},
       longs({1, -3})},
      {"linalg_cholesky", [](const Tensors& t) { return at::linalg_cholesky(t[0]); }, {square}, -square},
      {"linalg_inv", [](const Tensors& t) { return at::linalg_inv(t[0]); }, {square}, at::zeros({2, 2})},
      {"inverse", [](const Tensors& t) { return at::inverse(t[0]); }, {square}, at::zeros({2, 2})},
      {"linalg_solve",
       [](const Tensors& t) { return at::linalg_solve(t[1], t[0]); },
       {square, square},
       at::zeros({2, 2})},
      {"linalg_lu_factor",
       [](const Tensors& t) { return std::get<0>(at::linalg_lu_factor(t[0])); },
       {square},
       at::zeros({2, 2})},
      {"linalg_svdvals", [](const Tensors& t) { return at::linalg_svdvals(t[0]); }, {square}, square * std::nan("")},
      {"linalg_lstsq",
       [](const Tensors& t) { return std::get<0>(at::linalg_lstsq(t[1], t[0])); },
       {square, square},
       square * std::nan("")},
      {"linalg_pinv", [](const Tensors& t) { return at::linalg_pinv(t[0]); }, {square}, square * std::nan("")},
      {"matrix_rank", [](const Tensors& t) { return at::linalg_matrix_rank(t[0]); }, {square}, square * std::nan("")},
      {"lu_unpack",
       [](const Tensors& t) { return std::get<0>(at::lu_unpack(t[0], t[1])); },
       {square, longs({1, 2}).to(at::kInt)},
       longs({1, 9}).to(at::kInt)},
      {"quantile", [](const Tensors& t) { return at::quantile(t[0], t[1]); }, {three, floats({0.5})}, floats({1.5})},
      {"multinomial", [](const Tensors& t) { return at::multinomial(t[0], 1); }, {three}, floats({1, -2, 3})},
      {"bernoulli", [](const Tensors& t) { return at::bernoulli(t[0]); }, {floats({0, 1})}, floats({0, 2})},
      {"normal", [](const Tensors& t) { return at::normal(t[0], t[1]); }, {three, three}, -three},
      {"poisson", [](const Tensors& t) { return at::poisson(t[0]); }, {three}, -three},
      {"ctc_loss",
       [](const Tensors& t) {
         return at::ctc_loss(at::log_softmax(t[0].view({4, 1, 1}).expand({4, 1, 3}), 2), longs({1}).view({1, 1}), t[1],
                             longs({1}));
       },
       {four, longs({4})},
       longs({9})},
      {"pack_padded",
       [](const Tensors& t) { return std::get<0>(at::_pack_padded_sequence(t[0], t[1], true)); },
       {at::ones({2, 3, 2}), longs({3, 2})},
       longs({2, 3})},
  };
}

std::string thrown(const std::function<void()>& run) {
  try {
    run();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

Tensors copies(const Tensors& tensors) {
  Tensors result;
  for (const auto& tensor : tensors) result.push_back(tensor.clone());
  return result;
}

class Refusals : public Api, public ::testing::WithParamInterface<Refusal> {};

/// Calls the program with data it takes until it replays, and then with data it refuses. Gives what it threw.
template <class Program>
std::string refused_when_compiled(const Program& program, const Refusal& op, const Tensor& x, const Tensor& y) {
  auto fast = compile(program, unlimited());
  for (int call = 0; call < 4; ++call) (void)fast(x, y, copies(op.good));
  EXPECT_GT(fast.stats().replayed, 0) << fast.report().text();
  return thrown([&] { (void)fast(x, y, op.refused()); });
}

template <class Program>
std::string refused_when_eager(const Program& program, const Refusal& op, const Tensor& x, const Tensor& y) {
  for (int call = 0; call < 4; ++call) (void)program(x, y, copies(op.good));
  return thrown([&] { (void)program(x, y, op.refused()); });
}

template <class Program>
void expect_same(const Program& program, const Refusal& op) {
  const Tensor x = at::ones({3}), y = at::ones({3}), eager_x = at::ones({3}), eager_y = at::ones({3});
  const auto eager = refused_when_eager(program, op, eager_x, eager_y);
  ASSERT_FALSE(eager.empty());
  EXPECT_EQ(refused_when_compiled(program, op, x, y), eager);
  EXPECT_TRUE(at::equal(x, eager_x)) << x << eager_x;
  EXPECT_TRUE(at::equal(y, eager_y)) << y << eager_y;
}

TEST_P(Refusals, hold_where_nobody_reads_the_result) {
  const auto& op = GetParam();
  expect_same(
      [&op](const Tensor& x, const Tensor&, const Tensors& t) {
        (void)op.call(t);
        return x * 2 + 1;
      },
      op);
}

TEST_P(Refusals, hold_behind_a_host_read) {
  const auto& op = GetParam();
  expect_same(
      [&op](const Tensor& x, const Tensor&, const Tensors& t) {
        if (x.sum().item<double>() < 0) return x * 3;
        (void)op.call(t);
        return x * 2 + 1;
      },
      op);
}

TEST_P(Refusals, leave_what_was_written_before) {
  const auto& op = GetParam();
  expect_same(
      [&op](const Tensor& x, const Tensor& y, const Tensors& t) {
        x.add_(1);
        y.add_(x);
        const Tensor result = op.call(t);
        x.add_(10);
        y.mul_(x);
        return result * 1;
      },
      op);
}

/// Not all of linear algebra looks for data to refuse: what does not is no reason for another segment.
TEST_F(Api, norms_of_vectors_and_cross_products_do_not_end_segments) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x) {
    const Tensor length = at::linalg_vector_norm(x, 2, at::IntArrayRef{1}, /*keepdim=*/true);
    return at::linalg_cross(x / length, x + 1) * 2;
  };
  const auto fast = compile(program, unlimited({.strict = true}));
  for (int call = 0; call < 4; ++call) {
    const Tensor x = at::randn({8, 3});
    EXPECT_TRUE(same(fast(x), program(x)));
  }
  EXPECT_EQ(fast.report().entries.size(), 1) << fast.report();
}

/// Of two things that an operator refuses, it names the one that it looks at first, not a dim that Sinter looks at.
TEST_F(Api, a_dim_out_of_range_is_told_when_the_operator_tells_it) {
  int64_t dim = 0;
  const auto program = [&dim](const Tensor& x, const Tensor& index) { return x.index_fill_(dim, index, 5); };
  const auto told = [](const auto& call) {
    try {
      call();
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string("nothing");
  };
  const auto fast = compile(program, unlimited());
  for (int call = 0; call < 4; ++call) {
    dim = call < 2 ? 0 : 1;
    const Tensor both = longs({0, 1});
    EXPECT_EQ(told([&] { (void)fast(both, both); }), told([&] { (void)program(both, both); })) << "call " << call;
    const Tensor x = longs({7, 7});
    EXPECT_EQ(told([&] { (void)fast(x, both); }), told([&] { (void)program(x, both); })) << "call " << call;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Refusals, ::testing::ValuesIn(refusals()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace sinter::test
