#include "api_test.h"

namespace sinter::test {
namespace {

using Containers = Api;
using at::Tensor;

template <class F, class Check>
void call_five_times(F& fast, Check check) {
  for (int call = 0; call < 5; ++call) check(fast);
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_EQ(fast.stats().replayed, 4);
}

TEST_F(Containers, a_tuple_of_mixed_results_keeps_its_type) {
  auto fast = compile([](const Tensor& x) { return std::make_tuple(x + 1, x.size(0), 0.5, std::string("name"), true); },
                      unlimited());
  call_five_times(fast, [](auto& f) {
    const std::tuple<Tensor, int64_t, double, std::string, bool> result = f(at::ones({3}));
    EXPECT_TRUE(same(std::get<0>(result), at::ones({3}) + 1));
    EXPECT_EQ(std::get<1>(result), 3);
    EXPECT_EQ(std::get<2>(result), 0.5);
    EXPECT_EQ(std::get<3>(result), "name");
    EXPECT_TRUE(std::get<4>(result));
  });
}

TEST_F(Containers, vectors_go_in_and_out) {
  auto fast = compile(
      [](const std::vector<Tensor>& xs) {
        std::vector<Tensor> ys;
        for (const auto& x : xs) ys.push_back(x * 2);
        return ys;
      },
      unlimited());
  const std::vector<Tensor> two{at::ones({2}), at::ones({3})};
  call_five_times(fast, [&two](auto& f) {
    const auto ys = f(two);
    ASSERT_EQ(ys.size(), 2);
    EXPECT_TRUE(same(ys[1], two[1] * 2));
  });
  EXPECT_EQ(fast(std::vector<Tensor>{two[0]}).size(), 1);
}

/// What points into the vector as it was given points nowhere after the call.
TEST_F(Containers, a_vector_may_be_changed_inside) {
  std::string signatures;
  Options options = unlimited();
  options.on_event = [&](const Event& event) { signatures += event.signature + ";"; };
  auto fast = compile(
      [](std::vector<Tensor>& history, std::optional<Tensor>& last, const Tensor& x) {
        last.reset();
        history.push_back(x * 2);
        if (history.size() > 3) history.erase(history.begin(), history.begin() + 2);
        last = history.back() + 1;
        return *last * x;
      },
      std::move(options));
  std::vector<Tensor> history;
  std::optional<Tensor> last = at::ones({4});
  for (int call = 0; call < 12; ++call) {
    const Tensor x = at::full({4}, call, call < 6 ? at::kFloat : at::kDouble);
    ASSERT_TRUE(same(fast(history, last, x), (x * 2 + 1) * x)) << call;
    ASSERT_EQ(history.size(), call < 3 ? call + 1 : 2 + (call + 1) % 2) << call;
    ASSERT_TRUE(same(*last, x * 2 + 1)) << call;
  }
  EXPECT_NE(signatures.find("f64[4]"), std::string::npos) << signatures;
}

TEST_F(Containers, maps_go_in_and_out_whatever_their_order) {
  auto fast = compile(
      [](const std::unordered_map<std::string, Tensor>& in) {
        return std::map<std::string, Tensor>{{"sum", in.at("a") + in.at("b")}, {"difference", in.at("a") - in.at("b")}};
      },
      unlimited());
  call_five_times(fast, [](auto& f) {
    const auto out = f(std::unordered_map<std::string, Tensor>{{"b", at::ones({2})}, {"a", at::ones({2}) * 3}});
    EXPECT_TRUE(same(out.at("sum"), at::ones({2}) * 4));
    EXPECT_TRUE(same(out.at("difference"), at::ones({2}) * 2));
  });
}

TEST_F(Containers, optionals_go_in_and_out) {
  auto fast = compile(
      [](const Tensor& x, const std::optional<Tensor>& bias) -> std::optional<Tensor> {
        if (!bias) return std::nullopt;
        return x + *bias;
      },
      unlimited());
  const auto x = at::ones({2});
  for (int call = 0; call < 3; ++call) {
    EXPECT_FALSE(fast(x, std::nullopt).has_value());
    EXPECT_TRUE(same(*fast(x, std::optional<Tensor>(x)), x + x));
  }
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_F(Containers, nested_containers_and_arrays_and_pairs) {
  using Nested = std::vector<std::pair<std::string, std::array<Tensor, 2>>>;
  auto fast = compile([](const Nested& in) { return Nested{{in[0].first, {in[0].second[1] * 2, in[0].second[0]}}}; },
                      unlimited());
  const Nested in{{"first", {at::ones({2}), at::ones({3})}}};
  call_five_times(fast, [&in](auto& f) {
    const Nested out = f(in);
    EXPECT_EQ(out[0].first, "first");
    EXPECT_TRUE(same(out[0].second[0], at::ones({3}) * 2));
    EXPECT_TRUE(out[0].second[1].is_same(in[0].second[0]));
  });
}

TEST_F(Containers, undefined_tensors_go_in_and_out) {
  auto fast = compile(
      [](const Tensor& x, const Tensor& bias) { return std::make_pair(bias.defined() ? x + bias : x * 2, Tensor()); },
      unlimited());
  const auto x = at::ones({2});
  for (int call = 0; call < 3; ++call) {
    const auto [y, none] = fast(x, Tensor());
    EXPECT_TRUE(same(y, x * 2));
    EXPECT_FALSE(none.defined());
    EXPECT_TRUE(same(fast(x, x).first, x + x));
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 3);
}

TEST_F(Containers, functions_member_functions_and_move_only_lambdas_compile) {
  auto plain = compile(&erf_gelu, unlimited());
  const auto x = at::randn({4});
  EXPECT_TRUE(same(plain(x), erf_gelu(x)));
  auto factor = std::make_unique<double>(2);
  auto moved = compile([factor = std::move(factor)](const Tensor& t) { return t * *factor; }, unlimited());
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(moved(x), x * 2));
  auto pointer = compile(std::make_shared<ConvBnReluImpl>(), unlimited());
  EXPECT_EQ(pointer(at::randn({1, 3, 4, 4})).size(1), 8);
}

}  // namespace
}  // namespace sinter::test
