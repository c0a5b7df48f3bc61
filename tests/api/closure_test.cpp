#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include "api_test.h"

namespace sinter::test {
namespace {

/// Modules that a lambda closes over, without Options::modules.
class Closures : public Api {
 protected:
  /// Switches `dropout` to eval after three calls: without verifications, only a guard sees it.
  template <class Callable>
  void see_eval(torch::nn::Dropout& dropout, const Callable& callable) {
    auto fast = compile(callable, trusted({.verify = Verify::off}));
    const auto x = at::ones({64});
    for (int call = 0; call < 3; ++call) fast(x);
    dropout->eval();
    EXPECT_TRUE(at::equal(fast(x), x));
    const auto report = fast.report();
    ASSERT_EQ(report.entries.size(), 2) << report;
    EXPECT_EQ(report.entries[1].because.at(0).guard, "module Dropout") << report;
    dropout->train();
    fast(x);
    EXPECT_EQ(fast.report().entries.size(), 2);
  }
};

struct Agent {
  torch::nn::Dropout dropout;
};

TEST_F(Closures, are_guarded_whether_held_or_referred_to) {
  torch::nn::Dropout dropout(0.5);
  see_eval(dropout, [dropout](const at::Tensor& x) mutable { return dropout->forward(x); });
  see_eval(dropout, [&dropout](const at::Tensor& x) { return dropout->forward(x); });
  see_eval(dropout, [&](const at::Tensor& x) { return at::dropout(x, 0.5, dropout->is_training()); });
  see_eval(dropout, [agent = Agent{dropout}](const at::Tensor& x) mutable { return agent.dropout->forward(x); });
  see_eval(dropout, [module = dropout.get()](const at::Tensor& x) { return module->forward(x); });
  see_eval(dropout, std::function<at::Tensor(const at::Tensor&)>([&dropout](const auto& x) { return dropout(x); }));
}

TEST_F(Closures, out_of_sight_are_named_in_the_report) {
  struct {
    int number = 1;
    torch::nn::Linear layer{4, 4};
  } agent;
  auto fast = compile([&](const at::Tensor& x) { return agent.layer->forward(x) * agent.number; }, trusted());
  fast(at::randn({2, 4}));
  const auto notes = fast.report().entries.at(0).notes;
  ASSERT_EQ(notes.size(), 1);
  EXPECT_TRUE(notes[0].starts_with("2 state tensors that may be parameters of modules not in sight")) << notes[0];

  auto told = compile([&](const at::Tensor& x) { return agent.layer->forward(x) * agent.number; },
                      trusted({.modules = {{"layer", agent.layer.ptr()}}}));
  told(at::randn({2, 4}));
  EXPECT_TRUE(told.report().entries.at(0).notes.empty());
}

TEST_F(Closures, with_several_modules_are_guarded_by_each) {
  torch::nn::Linear layer(4, 4);
  torch::nn::Dropout dropout(0.5);
  auto fast = compile([&](const at::Tensor& x) { return dropout->forward(layer->forward(x)); }, trusted());
  const auto x = at::randn({2, 4});
  layer->eval();
  dropout->eval();
  for (int call = 0; call < 4; ++call) ASSERT_TRUE(same(fast(x), layer->forward(x)));
  layer->train();
  ASSERT_TRUE(same(fast(x), layer->forward(x)));
  EXPECT_EQ(fast.report().entries.at(1).because.at(0).guard, "module Linear");
}

}  // namespace
}  // namespace sinter::test
