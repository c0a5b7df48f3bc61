#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/checked/checked.h"

/// What a program sees of intermediate results beside their numbers, and whoever keeps or changes one, is as in eager.
namespace sinter::test {
namespace {

using at::Tensor;

/// What a program sees of a tensor beside its numbers.
struct Seen {
  std::vector<int64_t> sizes, strides;
  int64_t version = 0;
  bool is_view = false, requires_grad = false, is_inference = false, negated = false;
  bool operator==(const Seen&) const = default;
};

Seen look_at(const Tensor& tensor) {
  return {.sizes = tensor.sizes().vec(),
          .strides = tensor.strides().vec(),
          .version = tensor.is_inference() ? 0 : static_cast<int64_t>(tensor._version()),
          .is_view = tensor.is_view(),
          .requires_grad = tensor.requires_grad(),
          .is_inference = tensor.is_inference(),
          .negated = tensor.is_neg()};
}

/// A program that meets `meddle` half way in every third call, with an intermediate result and a view of it.
struct Program {
  std::function<void(Tensor&, Tensor&)> meddle;
  std::vector<Seen> seen{};

  Tensor operator()(const Tensor& x, int call) {
    Tensor made = x * 2;
    Tensor view = made.view({3, 2}).t();
    made.add_(1);
    seen.push_back(look_at(made));
    seen.push_back(look_at(view));
    if (call % 3 == 2) meddle(made, view);
    const Tensor after = x + 1;
    seen.push_back(look_at(after));
    return after.reshape({6}).slice(0, 1, 4) + 1;
  }
};

void expect_as_eager(const char* name, const std::function<void(Tensor&, Tensor&)>& meddle, bool inference) {
  SCOPED_TRACE(name);
  const c10::NoGradGuard no_grad;
  const c10::InferenceMode mode(inference);
  Program eager{meddle}, compiled{meddle};
  int call = 0;
  auto fast = compile([&](const Tensor& x) { return compiled(x, call); }, checked());
  for (call = 0; call < 12; ++call) {
    SCOPED_TRACE(call);
    const Tensor x = at::randn({2, 3});
    EXPECT_TRUE(same(fast(x), eager(x, call)));
    EXPECT_EQ(compiled.seen, eager.seen);
  }
  EXPECT_GE(fast.stats().replayed, 4);
}

TEST_F(Checked, intermediate_results_may_be_kept_and_changed) {
  std::vector<Tensor> kept;
  std::vector<c10::Storage> storages;
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> weak;
  const std::pair<const char*, std::function<void(Tensor&, Tensor&)>> programs[] = {
      {"nothing", [](Tensor&, Tensor&) {}},
      {"keeps one", [&](Tensor& made, Tensor&) { kept.push_back(made); }},
      {"keeps a view", [&](Tensor&, Tensor& view) { kept.push_back(view); }},
      {"keeps a view of a view", [&](Tensor&, Tensor& view) { kept.push_back(view.select(0, 0)); }},
      {"keeps an alias", [&](Tensor& made, Tensor&) { kept.push_back(made.detach()); }},
      {"keeps the storage", [&](Tensor& made, Tensor&) { storages.push_back(made.storage()); }},
      {"holds it weakly", [&](Tensor& made, Tensor&) { weak.emplace_back(made.getIntrusivePtr()); }},
      {"changes its shape", [&](Tensor& made, Tensor&) { made.unsqueeze_(0); }},
      {"changes the view's shape", [&](Tensor&, Tensor& view) { view.t_(); }},
      {"puts other data under it", [&](Tensor& made, Tensor&) { made.set_data(at::ones({2, 3})); }},
      {"writes once more", [&](Tensor& made, Tensor&) { made.mul_(2); }},
      {"writes through the view", [&](Tensor&, Tensor& view) { view.mul_(2); }},
      {"reads it", [&](Tensor& made, Tensor&) { (void)made.sum().item<float>(); }},
      {"gives it a name in another place", [&](Tensor& made, Tensor& view) { view = made; }},
  };
  for (const auto& [name, meddle] : programs) {
    expect_as_eager(name, meddle, false);
    if (std::string_view(name) != "holds it weakly") expect_as_eager(name, meddle, true);
  }
  for (const auto& tensor : weak) EXPECT_TRUE(tensor.expired()) << "nobody holds it once its call is over";
}

TEST_F(Checked, gradients_asked_of_a_stand_in_are_of_that_one_alone) {
  const c10::NoGradGuard no_grad;
  int call = 0;
  std::vector<bool> asked;
  const auto program = [&](const Tensor& x) {
    const Tensor made = x * 2;
    asked.push_back(made.requires_grad());
    if (call % 3 == 2) made.set_requires_grad(true);
    return made + 1;
  };
  auto fast = compile(program, checked());
  for (call = 0; call < 9; ++call)
    EXPECT_TRUE(same(fast(at::full({3}, call, at::kFloat)), at::full({3}, 2 * call + 1, at::kFloat)));
  for (const bool before : asked) EXPECT_FALSE(before);
}

TEST_F(Checked, what_a_call_was_given_is_not_held_after_it) {
  const c10::NoGradGuard no_grad;
  auto fast = compile([](const Tensor& x) { return (x.view({6}).slice(0, 1, 5) * 2).sum(); }, checked());
  for (int call = 0; call < 5; ++call) {
    Tensor x = at::randn({2, 3});
    const auto storage = x.storage().getWeakStorageImpl();
    (void)fast(x);
    EXPECT_EQ(x.use_count(), 1);
    x.reset();
    EXPECT_TRUE(storage.expired());
  }
}

TEST_F(Checked, results_are_held_by_nobody_else) {
  const c10::NoGradGuard no_grad;
  auto fast = compile([](const Tensor& x) { return std::vector<Tensor>{x * 2, (x + 1).view({6})}; }, checked());
  for (int call = 0; call < 5; ++call) {
    const auto results = fast(at::randn({2, 3}));
    for (const Tensor& result : results) {
      EXPECT_EQ(result.use_count(), 1);
      EXPECT_EQ(result.storage().use_count(), result.is_view() ? 2U : 1U);
    }
  }
}

}  // namespace
}  // namespace sinter::test
