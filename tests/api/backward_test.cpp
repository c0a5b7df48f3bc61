#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/tanh.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>

#include <atomic>
#include <functional>

#include "training.h"

/// Backward passes that are answered without autograd's engine, and those that are not: everything that the host may
/// do to a graph between its forward and its backward pass.
namespace sinter::test {
namespace {

namespace autograd = torch::autograd;

std::atomic<int> passes{0};  ///< that LibTorch's engine has run

/// LibTorch's engine, which counts. Sinter hands on to the one it finds.
class CountingEngine final : public autograd::Engine {
 public:
  autograd::variable_list execute(const autograd::edge_list& roots, const autograd::variable_list& inputs,
                                  bool keep_graph, bool create_graph, bool accumulate_grad,
                                  const autograd::edge_list& outputs) override {
    ++passes;
    return get_base_engine().execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
  }
};

autograd::Engine& counting_engine() {
  static autograd::Engine& engine = *new CountingEngine;
  return engine;
}

const bool counts = (autograd::set_default_engine_stub(&counting_engine), true);

/// Doubles what comes back, and counts: a function of the program's own.
struct Doubled : autograd::Function<Doubled> {
  static inline int calls = 0;
  static Tensor forward(autograd::AutogradContext* /*context*/, const Tensor& x) { return x * 3; }
  static autograd::variable_list backward(autograd::AutogradContext* /*context*/, autograd::variable_list gradients) {
    ++calls;
    return {gradients[0] * 6};
  }
};

struct DoublingHook : autograd::FunctionPostHook {
  autograd::variable_list operator()(const autograd::variable_list& outputs,
                                     const autograd::variable_list& /*inputs*/) override {
    autograd::variable_list doubled;
    for (const Tensor& output : outputs) doubled.push_back(output.defined() ? output * 2 : output);
    return doubled;
  }
};

class Backward : public Training {
 protected:
  using Leaves = std::vector<Tensor>;
  using Program = std::function<Tensor(const Leaves& leaves, const Tensor& x, int call)>;

  Leaves leaves() {
    at::manual_seed(5);
    const c10::NoGradGuard no_grad;
    Leaves made{at::randn({6, 4}), at::randn({4}), at::randn({4, 4})};
    for (Tensor& leaf : made) leaf = leaf.to(GetParam().device).requires_grad_();
    return made;
  }
  static Tensor loss_of(const Leaves& w, const Tensor& x) {
    return at::tanh(at::gelu(x.matmul(w[0]) + w[1]).matmul(w[2])).square().mean();
  }
  static Tensor gradient_copy(const Tensor& leaf) { return leaf.grad().defined() ? leaf.grad().clone() : Tensor(); }

  /// Runs a program compiled and eager, each with leaves of its own, and compares results, exceptions and gradients
  /// after every call. Gives the passes that the engine has run in the last `last` compiled calls.
  int compare(const Program& program, int calls = 12, int last = 4) {
    const Leaves mine = leaves(), others = leaves();
    int call = 0;
    auto fast = compile([&](const Tensor& x) { return program(mine, x, call); }, options());
    int run = 0;
    for (; call < calls; ++call) {
      const Tensor x = randn({5, 6});
      const int before = passes;
      Tensor result, wanted;
      std::string thrown, expected;
      const auto attempt = [](const auto& work, Tensor& into, std::string& error) {
        try {
          into = work();
        } catch (const c10::Error& e) {
          error = e.what_without_backtrace();
        }
      };
      attempt([&] { return fast(x); }, result, thrown);
      if (call >= calls - last) run += passes - before;
      attempt([&] { return program(others, x, call); }, wanted, expected);
      EXPECT_EQ(thrown, expected) << "call " << call;
      compare(call, result, wanted, mine, others);
    }
    return run;
  }

  static void compare(int call, const Tensor& result, const Tensor& wanted, const Leaves& mine, const Leaves& others) {
    SCOPED_TRACE("call " + std::to_string(call));
    const c10::NoGradGuard no_grad;
    ASSERT_EQ(result.defined(), wanted.defined());
    if (result.defined()) {
      EXPECT_TRUE(at::allclose(result, wanted, 1e-4, 1e-6));
    }
    for (size_t i = 0; i < mine.size(); ++i) {
      SCOPED_TRACE("leaf " + std::to_string(i));
      const Tensor &a = mine[i].grad(), &b = others[i].grad();
      ASSERT_EQ(a.defined(), b.defined());
      if (!a.defined()) continue;
      EXPECT_TRUE(at::allclose(a, b, 1e-4, 1e-6));
      EXPECT_EQ(a.strides(), b.strides());
      EXPECT_EQ(a.requires_grad(), b.requires_grad());
      EXPECT_EQ(a.is_view(), b.is_view());
      EXPECT_EQ(a._version(), b._version());
    }
  }
};

void forget(const std::vector<Tensor>& leaves) {
  for (const Tensor& leaf : leaves) leaf.mutable_grad() = Tensor();
}

TEST_P(Backward, a_known_pass_needs_no_engine) {
  const int run = compare([](const Leaves& w, const Tensor& x, int) {
    forget(w);
    const Tensor loss = loss_of(w, x);
    loss.backward();
    return loss.detach();
  });
  EXPECT_EQ(run, 0);
}

TEST_P(Backward, gradients_are_accumulated) {
  const int run = compare(
      [](const Leaves& w, const Tensor& x, int call) {
        if (call % 4 == 0) forget(w);
        const Tensor loss = loss_of(w, x);
        loss.backward();
        return loss.detach();
      },
      24, 8);
  EXPECT_EQ(run, 0);
}

TEST_P(Backward, several_losses_of_a_call) {
  const int run = compare([](const Leaves& w, const Tensor& x, int) {
    forget(w);
    loss_of(w, x).backward();
    loss_of(w, x * 2).backward();
    return x.clone();
  });
  EXPECT_EQ(run, 0);
}

TEST_P(Backward, a_gradient_of_the_callers_own) {
  const int run = compare([](const Leaves& w, const Tensor& x, int) {
    forget(w);
    const Tensor y = at::gelu(x.matmul(w[0]) + w[1]);
    y.backward(x.narrow(1, 0, 4) * 2);
    return y.detach();
  });
  EXPECT_EQ(run, 0);
}

TEST_P(Backward, optimizers_steps_between) {
  const int run = compare([](const Leaves& w, const Tensor& x, int call) {
    forget(w);
    const Tensor loss = loss_of(w, x);
    loss.backward();
    const c10::NoGradGuard no_grad;
    for (const Tensor& leaf : w) leaf.sub_(leaf.grad(), 0.1 / (call + 1));
    return loss.detach();
  });
  EXPECT_EQ(run, 0);
}

TEST_P(Backward, numbers_that_differ_reach_the_gradients) {
  (void)compare([](const Leaves& w, const Tensor& x, int call) {
    forget(w);
    const Tensor loss = loss_of(w, x) * (call < 6 ? 2.0 : 2.0 + call);
    loss.backward();
    return loss.detach();
  });
}

TEST_P(Backward, sizes_that_differ) {
  (void)compare([](const Leaves& w, const Tensor& x, int call) {
    forget(w);
    const Tensor loss = loss_of(w, x.narrow(0, 0, call % 2 == 0 ? 5 : 3 + call % 3));
    loss.backward();
    return loss.detach();
  });
}

TEST_P(Backward, a_leaf_is_frozen_in_turns) {
  (void)compare([](const Leaves& w, const Tensor& x, int call) {
    forget(w);
    w[1].set_requires_grad(call % 3 != 2);
    const Tensor loss = loss_of(w, x);
    loss.backward();
    w[1].set_requires_grad(true);
    return loss.detach();
  });
}

TEST_P(Backward, a_leaf_is_frozen_before_the_pass) {
  (void)compare([](const Leaves& w, const Tensor& x, int call) {
    forget(w);
    const Tensor loss = loss_of(w, x);
    if (call % 3 == 2) w[1].set_requires_grad(false);
    loss.backward();
    w[1].set_requires_grad(true);
    return loss.detach();
  });
}

TEST_P(Backward, hooks_come_and_go) {
  int seen = 0;
  (void)compare([&](const Leaves& w, const Tensor& x, int call) {
    forget(w);
    const auto hook = [&](const Tensor& gradient) {
      ++seen;
      return gradient * 2;
    };
    const unsigned on_leaf = call > 5 && call % 2 == 0 ? w[0].register_hook(hook) : 0;
    const Tensor hidden = x.matmul(w[0]) + w[1];
    if (call > 7) hidden.register_hook(hook);
    const Tensor loss = at::gelu(hidden).matmul(w[2]).square().mean();
    if (call == 9) loss.grad_fn()->add_post_hook(std::make_unique<DoublingHook>());
    loss.backward();
    if (call > 5 && call % 2 == 0) w[0].remove_hook(on_leaf);
    return loss.detach();
  });
  EXPECT_EQ(seen, 2 * (3 + 4));
}

TEST_P(Backward, gradients_inside_are_kept) {
  (void)compare([](const Leaves& w, const Tensor& x, int call) {
    forget(w);
    const Tensor hidden = x.matmul(w[0]) + w[1];
    if (call > 5) hidden.retain_grad();
    const Tensor loss = at::gelu(hidden).matmul(w[2]).square().mean();
    loss.backward();
    return call > 5 ? hidden.grad() : loss.detach();
  });
}

TEST_P(Backward, functions_of_the_program_run) {
  Doubled::calls = 0;
  const int run = compare([](const Leaves& w, const Tensor& x, int) {
    forget(w);
    const Tensor loss = Doubled::apply(x.matmul(w[0]) + w[1]).matmul(w[2]).mean();
    loss.backward();
    return loss.detach();
  });
  EXPECT_EQ(run, 4);
  EXPECT_EQ(Doubled::calls, 24);
}

TEST_P(Backward, a_graph_that_was_freed_throws) {
  (void)compare([](const Leaves& w, const Tensor& x, int call) {
    forget(w);
    const Tensor loss = loss_of(w, x);
    loss.backward({}, /*retain_graph=*/call < 8);
    if (call != 3) loss.backward();
    return loss.detach();
  });
}

TEST_P(Backward, a_graph_is_begun_outside) {
  const Tensor constant = leaves()[2].detach() * 2;
  const auto program = [&](const Leaves& w, const Tensor& part) {
    forget(w);
    const Tensor loss = (part.matmul(w[2]) + part.matmul(constant)).square().mean();
    loss.backward();
    return loss.detach();
  };
  const Leaves mine = leaves(), others = leaves();
  auto fast = compile([&](const Tensor& part) { return program(mine, part); }, options());
  for (int call = 0; call < 12; ++call) {
    const Tensor x = randn({5, 4});
    // The node of this product is the same to look at, whichever of two tensors that the call knows it has saved.
    const auto part = [&](const Leaves& w) { return (x + w[1]).matmul(call % 2 == 0 ? w[2].detach() : constant); };
    const Tensor result = fast(part(mine)), wanted = program(others, part(others));
    compare(call, result, wanted, mine, others);
  }
}

TEST_P(Backward, views_whose_place_differs) {
  (void)compare([](const Leaves& w, const Tensor& x, int call) {
    forget(w);
    const Tensor loss = (x.matmul(w[0]).select(0, call % 5) * w[1]).matmul(w[2].narrow(1, call % 3, 2)).sum();
    loss.backward();
    return loss.detach();
  });
}

TEST_P(Backward, an_operator_that_only_changes_strides) {
  const int run = compare([](const Leaves& w, const Tensor& x, int) {
    forget(w);
    const Tensor image = x.matmul(w[0]).view({1, 5, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast);
    const Tensor pooled = at::adaptive_avg_pool2d(image * 2, 1);
    const Tensor loss = pooled.as_strided({2, 2}, {2, 1}, 1).square().mean();
    loss.backward();
    return loss.detach();
  });
  EXPECT_EQ(run, 0);
}

TEST_P(Backward, leaves_over_the_same_memory) {
  (void)compare([](const Leaves& w, const Tensor& x, int call) {
    forget(w);
    const Tensor alias = w[0].detach().requires_grad_();
    const Tensor loss = (x.matmul(call % 3 == 2 ? alias : w[0]) * x.matmul(call % 3 == 2 ? w[0] : alias)).mean();
    loss.backward();
    return alias.grad().clone();
  });
}

TEST_P(Backward, gradients_are_parts_of_one_memory) {
  (void)compare([](const Leaves& w, const Tensor& x, int) {
    forget(w);
    const Tensor loss = at::cat({w[0], w[2]}).mul(x.sum()).square().sum();
    loss.backward();
    return loss.detach();
  });
}

TEST_P(Backward, a_write_on_a_view) {
  (void)compare([](const Leaves& w, const Tensor& x, int) {
    forget(w);
    Tensor hidden = x.matmul(w[0]);
    hidden.select(0, 1).mul_(w[1]);
    const Tensor loss = hidden.matmul(w[2]).square().mean();
    loss.backward();
    return loss.detach();
  });
}

TEST_P(Backward, a_saved_tensor_is_written) {
  (void)compare([](const Leaves& w, const Tensor& x, int call) {
    forget(w);
    Tensor hidden = x.matmul(w[0]).exp();
    const Tensor loss = hidden.matmul(w[2]).mean();
    if (call > 7) hidden.detach().add_(1);
    loss.backward();
    return loss.detach();
  });
}

TEST_P(Backward, anomalies_are_looked_for) {
  (void)compare([](const Leaves& w, const Tensor& x, int call) {
    forget(w);
    autograd::AnomalyMode::set_enabled(call > 7);
    const Tensor loss = loss_of(w, x);
    loss.backward();
    autograd::AnomalyMode::set_enabled(false);
    return loss.detach();
  });
}

TEST_P(Backward, a_graph_that_stays_is_gone_through_twice) {
  const int run = compare([](const Leaves& w, const Tensor& x, int) {
    forget(w);
    const Tensor loss = loss_of(w, x);
    loss.backward({}, /*retain_graph=*/true);
    loss.backward();
    return gradient_copy(w[0]);
  });
  EXPECT_EQ(run, 0);
}

TEST_P(Backward, gradients_of_gradients) {
  (void)compare([](const Leaves& w, const Tensor& x, int) {
    forget(w);
    const Tensor loss = loss_of(w, x);
    const auto first = autograd::grad({loss}, {w[0]}, {}, std::nullopt, /*create_graph=*/true);
    const Tensor penalised = loss + first[0].square().sum();
    penalised.backward();
    return penalised.detach();
  });
}

TEST_P(Backward, what_is_saved_is_freed) {
  const Leaves mine = leaves();
  Tensor kept;
  auto fast = compile(
      [&](const Tensor& x) {
        forget(mine);
        kept = loss_of(mine, x);
        kept.backward();
        return x.clone();
      },
      options());
  for (int call = 0; call < 8; ++call) (void)fast(randn({5, 6}));
  EXPECT_THROW(kept.backward(), c10::Error) << "the graph was freed";
}

INSTANTIATE_TEST_SUITE_P(Everywhere, Backward, everywhere(), name_of);

}  // namespace
}  // namespace sinter::test
