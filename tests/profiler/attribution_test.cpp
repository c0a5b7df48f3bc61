#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "small_models.h"

namespace sinter::test {
namespace {

const Profile& trained() {
  static const Profile profile = profile_of(training_step(), at::ones({64, 32}), {.steps = 2, .name = "small"});
  return profile;
}

const ModeProfile& eager() { return trained().modes.front(); }

std::string path_of(const ModeProfile& profile, const ProfiledOperator& op) {
  return op.module < 0 ? "none" : profile.modules.at(static_cast<size_t>(op.module)).path;
}

/// Paths of the operators of that name in a phase of the first traced step, in order.
std::vector<std::string> paths_of(const std::string& op, Phase phase) {
  std::vector<std::string> paths;
  for (const ProfiledOperator& each : eager().operators) {
    if (each.step == 0 && each.op == op && each.phase == phase) paths.push_back(path_of(eager(), each));
  }
  return paths;
}

using Paths = std::vector<std::string>;

TEST(Attribution, modules_are_those_of_the_program) {
  Paths paths;
  for (const ProfiledModule& module : eager().modules) paths.push_back(module.path);
  EXPECT_EQ(paths, small_paths());
}

TEST(Attribution, of_operators_with_parameters_is_their_owner) {
  EXPECT_EQ(paths_of("aten::addmm", Phase::forward),
            Paths({"blocks.block0.norm", "blocks.block0.out", "blocks.block1.norm", "blocks.block1.out",
                   "blocks.block2.norm", "blocks.block2.out", "head"}));
}

TEST(Attribution, of_operators_without_parameters_is_the_module_whose_function_called_them) {
  const Paths blocks{"blocks.block0", "blocks.block1", "blocks.block2"};
  EXPECT_EQ(paths_of("aten::relu", Phase::forward), blocks) << "first in its block: what comes after decides";
  EXPECT_EQ(paths_of("aten::add.Tensor", Phase::forward), blocks) << "last in its block: what came before decides";
  EXPECT_EQ(paths_of("aten::gelu", Phase::forward),
            Paths({"blocks.block0.act", "blocks.block1.act", "blocks.block2.act"}));
  EXPECT_EQ(paths_of("aten::gather", Phase::forward), Paths({"drop"}));
}

TEST(Attribution, of_backward_operators_is_that_of_the_forward_operator) {
  EXPECT_EQ(paths_of("aten::gelu_backward", Phase::backward),
            Paths({"blocks.block2.act", "blocks.block1.act", "blocks.block0.act"}));
  EXPECT_EQ(paths_of("aten::threshold_backward", Phase::backward), Paths({"blocks.block2", "blocks.block1"}))
      << "what the first one reads requires no gradients";
}

TEST(Attribution, of_gradients_that_add_up_is_the_owner_of_the_parameter) {
  std::set<std::string> owners;
  for (const ProfiledOperator& op : eager().operators) {
    if (op.autograd == "AccumulateGrad") owners.insert(path_of(eager(), op));
  }
  EXPECT_EQ(owners.count("none"), 0U);
  EXPECT_EQ(owners.count("head"), 1U);
}

TEST(Attribution, of_the_optimizer_is_the_owner_of_the_parameter) {
  std::map<std::string, int> calls;
  for (const ProfiledOperator& op : eager().operators) {
    if (op.phase == Phase::optimizer && op.step == 1) ++calls[path_of(eager(), op)];
  }
  EXPECT_EQ(calls.size(), 7U) << "six linear layers in blocks and the head, and nothing without one";
  EXPECT_EQ(calls["head"], calls["blocks.block1.out"]);
  EXPECT_GE(calls["head"], 6) << "momentum, sum and update of two parameters";
}

TEST(Attribution, what_comes_after_the_model_and_before_the_backward_pass_is_the_loss) {
  EXPECT_EQ(paths_of("aten::mse_loss", Phase::loss), Paths({"none"}));
  EXPECT_EQ(paths_of("aten::mse_loss_backward", Phase::backward), Paths({"none"}));
  for (const ProfiledOperator& op : eager().operators) {
    if (op.op == "aten::mse_loss_backward") {
      EXPECT_EQ(op.how, Attribution::loss);
    }
  }
}

TEST(Attribution, lines_are_those_of_the_forward_code_also_in_the_backward_pass) {
  const SmallProgram program = training_step();
  std::set<std::string> gather;
  std::set<std::string> residual;
  for (const ProfiledOperator& op : eager().operators) {
    if (op.op == "aten::gather" || op.autograd == "GatherBackward0") gather.insert(op.line);
    if (op.op == "aten::add.Tensor" && op.phase == Phase::forward) residual.insert(op.line);
  }
  EXPECT_EQ(gather, std::set<std::string>{program.drop_line});
  EXPECT_EQ(residual, std::set<std::string>{program.residual_line});
}

TEST(Attribution, covers_the_time_of_a_step) {
  double all = 0;
  double without_phase = 0;
  for (const ProfiledOperator& op : eager().operators) {
    all += op.host;
    if (op.phase == Phase::other || op.op.empty()) without_phase += op.host;
  }
  EXPECT_GT(all, 0);
  EXPECT_LE(without_phase, 0.01 * all);
  EXPECT_GE(eager().attributed(), 0.95);
}

TEST(Attribution, of_a_compiled_step_names_modules_phases_and_lines_too) {
  const Profile profile =
      profile_of(training_step(), at::ones({64, 32}), {.steps = 2, .compile = Options{.compile_budget = 1e9}});
  ASSERT_EQ(profile.modes.size(), 2U);
  const ModeProfile& compiled = profile.modes.back();
  EXPECT_EQ(compiled.mode, "default");
  std::set<std::string> generated;
  bool backward = false;
  for (const ProfiledOperator& op : compiled.operators) {
    if (!op.op.starts_with("fused_")) continue;
    generated.insert(op.modules.begin(), op.modules.end());
    backward = backward || (op.phase == Phase::backward && !op.line.empty());
  }
  EXPECT_EQ(generated.count("blocks.block1.act"), 1U) << profile.text();
  EXPECT_TRUE(backward) << profile.text();
}

TEST(Attribution, of_inference_has_one_phase) {
  const c10::NoGradGuard no_grad;
  const SmallProgram program = training_step();
  const auto forward = [module = std::dynamic_pointer_cast<torch::nn::Module>(program.module)](const at::Tensor& x) {
    return module->named_parameters()["head.weight"].matmul(x.t());
  };
  const Profile profile =
      sinter::profile(forward, {.steps = 1, .modules = {{"net", program.module}}})(at::ones({2, 32}));
  for (const ProfiledOperator& op : profile.modes.front().operators) {
    EXPECT_EQ(op.phase, Phase::forward);
    if (op.op == "aten::matmul") {
      EXPECT_EQ(path_of(profile.modes.front(), op), "net.head");
    }
  }
}

}  // namespace
}  // namespace sinter::test
