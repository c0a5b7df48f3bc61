// What a profile says beside what hooks say that were registered by hand on every module.
#include <ATen/Context.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <sinter/profile.h>

#include <algorithm>

#include "watched_model.h"

namespace sinter::test {
namespace {

std::string without_overload(const std::string& name) { return name.substr(0, name.find('.')); }

std::string module_of(const ModeProfile& profile, const ProfiledOperator& op) {
  return op.module < 0 ? "-" : profile.modules.at(static_cast<size_t>(op.module)).path;
}

/// Operators of the last step by module, as hooks know them and as the profile does: those that both have seen.
class Beside {
 public:
  Beside(const ModeProfile& profile, const std::vector<WatchedOperator>& watched) {
    size_t at = 0;
    for (const ProfiledOperator& op : profile.operators) {
      const bool told_by_hooks = op.phase == Phase::forward || op.phase == Phase::backward;
      if (op.step != profile.steps - 1 || !told_by_hooks) continue;
      const auto same = std::find_if(watched.begin() + static_cast<std::ptrdiff_t>(at), watched.end(),
                                     [&](const auto& one) { return one.name == without_overload(op.op); });
      if (same == watched.end()) {
        ADD_FAILURE() << op.op << " was seen by the profile alone";
        continue;
      }
      at = static_cast<size_t>(same - watched.begin()) + 1;
      if (same->module == "-") continue;  // what autograd's engine does between nodes no hook sees
      const std::string known = module_of(profile, op);
      (known == same->module ? agree : differ) += profile.time_of(op);
      if (known != same->module) {
        differences += op.op + " of " + op.autograd + ": " + known + ", by hand " + same->module + "\n";
      }
    }
  }

  double agree = 0;   ///< microseconds
  double differ = 0;  ///< microseconds
  std::string differences;
};

void expect_what_hooks_say(at::Device device) {
  WatchedStep step(device);
  const auto call = [&step](const at::Tensor& x) { step(x); };
  const Profile profile =
      sinter::profile(call, {.steps = 2, .modules = {{"", step.module()}}})(at::ones({4, 64, 32}, device));
  const Beside beside(profile.modes.front(), step.operators());
  EXPECT_GT(beside.agree, 0);
  EXPECT_GE(beside.agree, 0.95 * (beside.agree + beside.differ)) << beside.differences;
}

TEST(Hooks, by_hand_say_what_the_profile_says) { expect_what_hooks_say(at::kCPU); }

TEST(Hooks, by_hand_say_what_the_profile_says_of_a_gpu) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no GPU here";
  expect_what_hooks_say(at::kCUDA);
}

}  // namespace
}  // namespace sinter::test
