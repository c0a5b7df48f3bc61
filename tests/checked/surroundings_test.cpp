// Work that is done later runs under the settings that its operators were called under.
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "frontend/replay/surroundings.h"

namespace sinter::frontend {
namespace {

/// A setting that programs switch, as a flag.
struct Switch {
  const char* name;
  std::function<bool()> read;
  std::function<void(bool)> write;
};

std::vector<Switch> switches() {
  at::Context& context = at::globalContext();
  return {
      {"deterministic algorithms", [&] { return context.deterministicAlgorithms(); },
       [&](bool on) { context.setDeterministicAlgorithms(on, false); }},
      {"warnings instead of errors", [&] { return context.deterministicAlgorithmsWarnOnly(); },
       [&](bool on) { context.setDeterministicAlgorithms(false, on); }},
      {"TF32 in cuBLAS", [&] { return context.allowTF32CuBLAS(); }, [&](bool on) { context.setAllowTF32CuBLAS(on); }},
      {"TF32 in cuDNN", [&] { return context.allowTF32CuDNN(); }, [&](bool on) { context.setAllowTF32CuDNN(on); }},
      {"cuDNN", [&] { return context.userEnabledCuDNN(); }, [&](bool on) { context.setUserEnabledCuDNN(on); }},
      {"cuDNN benchmark", [&] { return context.benchmarkCuDNN(); }, [&](bool on) { context.setBenchmarkCuDNN(on); }},
      {"oneDNN", [&] { return context.userEnabledMkldnn(); }, [&](bool on) { context.setUserEnabledMkldnn(on); }},
      {"flash attention", [&] { return context.userEnabledFlashSDP(); }, [&](bool on) { context.setSDPUseFlash(on); }},
      {"split-K in cuBLAS",
       [&] { return context.allowFP16ReductionCuBLAS() == at::CuBLASReductionOption::AllowReducedPrecisionWithSplitK; },
       [&](bool on) { context.setAllowFP16ReductionCuBLAS(on, on); }},
      {"f64 by default", [] { return c10::get_default_dtype_as_scalartype() == at::kDouble; },
       [](bool on) { c10::set_default_dtype(c10::scalarTypeToTypeMeta(on ? at::kDouble : at::kFloat)); }},
  };
}

TEST(Surroundings, settings_are_those_of_the_work_while_it_is_done) {
  for (const Switch& item : switches()) {
    const bool usual = item.read();
    for (const bool called_under : {false, true}) {
      item.write(called_under);
      const auto surroundings = KernelSurroundings::current();
      EXPECT_TRUE(surroundings.are_current(SettingSet::all())) << item.name;
      item.write(!called_under);
      EXPECT_FALSE(surroundings.are_current(SettingSet::all())) << item.name;
      {
        const SurroundingsGuard work(surroundings, true);
        EXPECT_EQ(item.read(), called_under) << item.name;
        EXPECT_TRUE(surroundings.are_current(SettingSet::all())) << item.name;
      }
      EXPECT_EQ(item.read(), !called_under) << item.name;
    }
    item.write(usual);
  }
}

TEST(Surroundings, work_that_settings_do_not_decide_leaves_them_alone) {
  const auto surroundings = KernelSurroundings::current();
  at::globalContext().setBenchmarkCuDNN(true);
  {
    const SurroundingsGuard work(surroundings, false);
    EXPECT_TRUE(at::globalContext().benchmarkCuDNN());
  }
  EXPECT_TRUE(surroundings.are_current(SettingSet()));
  at::globalContext().setBenchmarkCuDNN(false);
}

TEST(Surroundings, an_operator_looks_at_the_settings_of_its_concerns_and_devices) {
  at::Context& context = at::globalContext();
  const SettingSet products_on_cuda(SettingConcerns{.products = true, .on_cpu = false});
  const SettingSet products_on_cpu(SettingConcerns{.products = true, .on_cuda = false});
  const SettingSet convolutions_on_cuda(SettingConcerns{.convolutions = true, .on_cpu = false});
  const auto surroundings = KernelSurroundings::current();
  const bool tf32 = context.allowTF32CuBLAS();
  context.setAllowTF32CuBLAS(!tf32);
  EXPECT_FALSE(surroundings.are_current(products_on_cuda));
  EXPECT_TRUE(surroundings.are_current(products_on_cpu));
  EXPECT_TRUE(surroundings.are_current(convolutions_on_cuda));
  context.setAllowTF32CuBLAS(tf32);
  context.setBenchmarkCuDNN(true);
  EXPECT_TRUE(surroundings.are_current(products_on_cuda));
  EXPECT_FALSE(surroundings.are_current(convolutions_on_cuda));
  context.setBenchmarkCuDNN(false);
  context.setDeterministicAlgorithms(true, false);
  EXPECT_FALSE(surroundings.are_current(products_on_cuda));
  EXPECT_FALSE(surroundings.are_current(convolutions_on_cuda));
  EXPECT_TRUE(surroundings.are_current(SettingSet()));
  context.setDeterministicAlgorithms(false, false);
}

}  // namespace
}  // namespace sinter::frontend
