#include <ATen/ops/full.h>
#include <torch/library.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "api_test.h"

/// What runs as eager runs it inside a compiled call, what looks as if it did and does not, and what the report says.
namespace sinter::test {
namespace {

int64_t runs_of_untagged = 0;

at::Tensor untagged(const at::Tensor& x) {
  ++runs_of_untagged;
  return x * 2;
}
at::Tensor tagged(const at::Tensor& x) { return x * 2; }

TORCH_LIBRARY(sinter_breaks_test, library) {
  library.def("untagged(Tensor x) -> Tensor");
  library.impl("untagged", c10::DispatchKey::CompositeExplicitAutograd, &untagged);
  library.def("tagged(Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag});
  library.impl("tagged", c10::DispatchKey::CompositeExplicitAutograd, &tagged);
}

at::Tensor call_own(const char* name, const at::Tensor& x) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<at::Tensor(const at::Tensor&)>().call(x);
}

using Unary = at::Tensor (*)(const at::Tensor&);

/// A program that breaks, and the same as the break's hint or docs/breaks.md asks for.
struct Row {
  const char* name;
  const char* op;    ///< that the break must name
  const char* said;  ///< in its reason or its hint
  Unary breaks;
  Unary follows;
};

const Row rows[] = {
    {"sparse", "aten::_to_sparse", "", [](const at::Tensor& x) { return (x * 2).to_sparse().to_dense() + 1; },
     [](const at::Tensor& x) { return x * 2 + 1; }},
    {"an_operator_of_ones_own", "sinter_breaks_test::untagged", "pt2_compliant_tag",
     [](const at::Tensor& x) { return call_own("sinter_breaks_test::untagged", x * 3) + 1; },
     [](const at::Tensor& x) { return call_own("sinter_breaks_test::tagged", x * 3) + 1; }},
    {"memory_through_a_pointer", "", "sinter::materialize",
     [](const at::Tensor& x) { return at::full({2}, *(x * 2).const_data_ptr<float>()); },
     [](const at::Tensor& x) { return at::full({2}, *materialize(x * 2).const_data_ptr<float>()); }},
};

class Catalogue : public ::testing::TestWithParam<Row> {
 private:
  c10::NoGradGuard no_grad_;
};
INSTANTIATE_TEST_SUITE_P(Breaks, Catalogue, ::testing::ValuesIn(rows),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(Catalogue, a_break_says_what_it_is_and_what_to_do) {
  const Row& row = GetParam();
  auto fast = compile(row.breaks, unlimited());
  for (int call = 0; call < 4; ++call) {
    const auto x = at::randn({4, 4});
    EXPECT_TRUE(same(fast(x), row.breaks(x)));
  }
  const auto found = only_break(fast.report());
  EXPECT_EQ(found.code, BreakCode::unsupported_op);
  EXPECT_EQ(found.op.find(row.op), 0) << found.op;
  EXPECT_NE((found.reason + found.hint).find(row.said), std::string::npos) << fast.report();
}

TEST_P(Catalogue, following_the_hint_makes_it_go_away) {
  const Row& row = GetParam();
  auto fast = compile(row.follows, unlimited({.fullgraph = true, .strict = true}));
  for (int call = 0; call < 4; ++call) {
    const auto x = at::randn({4, 4});
    EXPECT_TRUE(same(fast(x), row.follows(x)));
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_EQ(fast.stats().replayed, 3);
}

TEST(CatalogueOfBreaks, is_in_the_docs) {
  const std::filesystem::path page = std::string(SINTER_DOCS) + "/breaks.md";
  if (!std::filesystem::exists(page)) GTEST_SKIP() << "the sources are not here";
  std::stringstream text;
  text << std::ifstream(page).rdbuf();
  for (const auto code : {BreakCode::unsupported_op, BreakCode::compile_failed}) {
    EXPECT_NE(text.str().find("| `" + std::string(name(code)) + "` |"), std::string::npos) << name(code);
  }
}

using Breaks = Api;

TEST_F(Breaks, an_operator_of_ones_own_runs_once_in_every_call) {
  auto fast =
      compile([](const at::Tensor& x) { return call_own("sinter_breaks_test::untagged", x * 3) + 1; }, unlimited());
  runs_of_untagged = 0;
  for (int64_t call = 1; call <= 5; ++call) {
    EXPECT_TRUE(same(fast(at::ones({4})), at::ones({4}) * 7));
    EXPECT_EQ(runs_of_untagged, call);
  }
  EXPECT_EQ(fast.stats().replayed, 4) << "what lies around it is compiled";
}

TEST_F(Breaks, the_text_and_the_json_list_it) {
  auto fast = compile([](const at::Tensor& x) { return x.relu().sum(0).to_sparse().to_dense(); }, unlimited());
  for (int call = 0; call < 4; ++call) (void)fast(at::randn({4, 4}));
  EXPECT_NE(fast.report().text().find("break     unsupported-op  aten::"), std::string::npos) << fast.report();
  EXPECT_NE(fast.report().json().find("\"code\": \"unsupported-op\""), std::string::npos) << fast.report().json();
}

TEST_F(Breaks, a_sparse_input_runs_eagerly) {
  auto fast = compile([](const at::Tensor& x) { return x.to_dense() + 1; }, unlimited());
  const auto sparse = at::eye(3).to_sparse();
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(sparse), at::eye(3) + 1));
  EXPECT_EQ(only_break(fast.report()).code, BreakCode::unsupported_op);
}

TEST_F(Breaks, fullgraph_turns_a_break_into_a_user_error_that_names_it) {
  auto fast = compile([](const at::Tensor& x) { return x.to_sparse().to_dense(); },
                      unlimited({.fullgraph = true, .name = "reader"}));
  for (int call = 0; call < 2; ++call) {
    try {
      fast(at::ones({2}));
      FAIL() << "no error";
    } catch (const UserError& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.find("reader: fullgraph: unsupported-op"), 0) << text;
    }
  }
}

/// Programs that are compiled, whatever they look like.
using NoBreaks = Api;

TEST_F(NoBreaks, an_argument_turned_in_place_is_turned_once_a_call) {
  auto fast = compile([](at::Tensor x) { return x.t_() * 2; }, unlimited());
  const auto x = at::randn({4, 3});
  const auto before = x.clone();
  for (int call = 1; call <= 6; ++call) {
    const auto turned = call % 2 == 1 ? before.t() : before;
    EXPECT_TRUE(at::equal(fast(x), turned * 2));
    EXPECT_EQ(x.sizes(), turned.sizes());
  }
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_F(NoBreaks, state_squeezed_in_place) {
  const auto state = at::zeros({1, 3});
  auto fast = compile([state](const at::Tensor& x) { return x + state.unsqueeze_(0); }, unlimited());
  for (int64_t call = 1; call <= 4; ++call) EXPECT_EQ(fast(at::zeros({3})).dim(), 2 + call);
  EXPECT_EQ(state.dim(), 6);
}

TEST_F(NoBreaks, a_host_read_keeps_following_the_value) {
  auto fast = compile([](const at::Tensor& x) { return x.sum().item<float>() > 0 ? x + 1 : x - 1; }, unlimited());
  for (int call = 0; call < 3; ++call) {
    EXPECT_TRUE(same(fast(at::ones({4})), at::ones({4}) + 1));
    EXPECT_TRUE(same(fast(-at::ones({4})), -at::ones({4}) - 1));
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 3);
}

TEST_F(NoBreaks, a_call_that_needs_gradients_keeps_its_graph) {
  const at::AutoGradMode grad(true);
  auto fast = compile(erf_gelu, unlimited());
  auto x = at::randn({4}).requires_grad_();
  auto z = x.detach().clone().requires_grad_();
  for (int call = 0; call < 5; ++call) {
    const auto y = fast(x);
    EXPECT_TRUE(y.requires_grad());
    EXPECT_TRUE(same(y, erf_gelu(x)));
    y.sum().backward();
    erf_gelu(z).sum().backward();
    EXPECT_TRUE(same(x.grad(), z.grad()));
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_EQ(fast.stats().replayed, 4);
}

TEST_F(NoBreaks, parameters_that_require_gradients_count_as_well) {
  const at::AutoGradMode grad(true);
  torch::nn::Linear layer(4, 4);
  auto fast = compile(layer, unlimited());
  const auto x = at::randn({2, 4});
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(fast(x).requires_grad());
  const c10::NoGradGuard no_grad;
  for (int call = 0; call < 3; ++call) {
    EXPECT_FALSE(fast(x).requires_grad());
    EXPECT_TRUE(same(fast(x), layer->forward(x)));
  }
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_F(NoBreaks, grad_mode_without_anything_that_requires_gradients) {
  const at::AutoGradMode grad(true);
  auto fast = compile(erf_gelu, unlimited());
  const auto x = at::randn({4});
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(x), erf_gelu(x)));
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_EQ(fast.stats().replayed, 2);
}

/// LibTorch refuses to make anew the history of one of several views whose base was written.
TEST_F(NoBreaks, a_result_whose_history_cannot_be_made_is_returned_as_eager_returns_it) {
  const at::AutoGradMode grad(true);
  const auto program = [](const at::Tensor& x) {
    const auto y = x * 2;
    const auto first = y.unbind(0)[0];
    y.mul_(3);
    return first;
  };
  const auto x = at::randn({2, 3}).requires_grad_();
  ASSERT_THROW((void)program(x).grad_fn(), c10::Error);
  auto fast = compile(program, unlimited());
  for (int call = 0; call < 4; ++call) EXPECT_TRUE(same(fast(x), program(x)));
}

TEST_F(NoBreaks, batch_norm_in_training_updates_its_statistics_once_a_call) {
  ConvBnRelu model;
  model->train();
  auto fast = compile(model, unlimited());
  const auto x = at::randn({2, 3, 8, 8});
  for (int call = 1; call <= 3; ++call) {
    fast(x);
    EXPECT_EQ(model->bn->num_batches_tracked.item<int64_t>(), call);
  }
  EXPECT_TRUE(unbroken(fast.report())) << fast.report();
}

TEST_F(NoBreaks, an_argument_of_a_foreign_type) {
  struct Foreign {
    double factor;
  };
  auto fast = compile([](const at::Tensor& x, const Foreign& f) { return x * f.factor; }, unlimited());
  const auto x = at::ones({2});
  for (int call = 0; call < 4; ++call) EXPECT_TRUE(same(fast(x, Foreign{2.0 + call}), x * (2 + call)));
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 2);
}

TEST_F(NoBreaks, a_result_of_a_foreign_type) {
  struct Pair {
    at::Tensor a;
    int b;
  };
  auto fast = compile([](const at::Tensor& x) { return Pair{x * 2, 5}; }, unlimited());
  for (int call = 0; call < 3; ++call) {
    const auto pair = fast(at::ones({2}));
    EXPECT_TRUE(same(pair.a, at::ones({2}) * 2));
    EXPECT_EQ(pair.b, 5);
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_EQ(fast.stats().replayed, 2);
}

TEST_F(NoBreaks, a_callable_without_a_result_runs_every_time) {
  at::Tensor seen;
  auto fast = compile([&seen](const at::Tensor& x) { seen = x * 2; }, unlimited());
  for (int call = 1; call <= 3; ++call) {
    fast(at::ones({2}) * call);
    EXPECT_TRUE(same(seen, at::ones({2}) * 2 * call));
  }
  EXPECT_EQ(fast.stats().replayed, 2);
}

TEST_F(NoBreaks, numbers_that_change_on_their_own) {
  int64_t calls = 0;
  auto fast = compile(
      [&calls](const at::Tensor& x) {
        const auto y = x * static_cast<double>(++calls);
        return std::make_tuple(y, calls);
      },
      unlimited());
  for (int64_t call = 1; call <= 5; ++call) {
    const auto [y, number] = fast(at::ones({2}));
    EXPECT_EQ(y[0].item<float>(), static_cast<float>(call));
    EXPECT_EQ(number, call);
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 2);
}

TEST_F(NoBreaks, exceptions_of_the_program_pass_unchanged_and_leave_nothing_behind) {
  torch::nn::Linear layer(4, 4);
  auto fast = compile(layer, unlimited());
  EXPECT_THROW(fast(at::randn({2, 5})), c10::Error);
  const auto x = at::randn({2, 4});
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(x), layer->forward(x)));
  EXPECT_THROW(fast(at::randn({2, 5})), c10::Error);
  auto own = compile(
      [](const at::Tensor& t) -> at::Tensor {
        if (t.numel() > 3) throw std::range_error("too many");
        return t + 1;
      },
      unlimited());
  EXPECT_THROW(own(at::ones({4})), std::range_error);
  EXPECT_TRUE(same(own(at::ones({3})), at::ones({3}) + 1));
}

}  // namespace
}  // namespace sinter::test
