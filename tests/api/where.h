#pragma once

#include <c10/core/DeviceType.h>
#include <gtest/gtest.h>

#include <string>

#include "api_test.h"

namespace sinter::test {

/// A device and a mode that a test of programs runs on.
struct Where {
  const char* name;
  at::DeviceType device;
  Mode mode;
};

inline std::string name_of(const ::testing::TestParamInfo<Where>& instance) { return instance.param.name; }

/// On the CPU, and on a GPU with kernels launched one by one and as recorded graphs.
inline auto everywhere() {
  return ::testing::Values(Where{"cpu", at::kCPU, Mode::Default}, Where{"gpu", at::kCUDA, Mode::Default},
                           Where{"gpu_graph", at::kCUDA, Mode::ReduceOverhead});
}

/// Skipped where the device is missing.
class OnDevice : public ::testing::TestWithParam<Where> {
 protected:
  void SetUp() override {
    if (GetParam().device == at::kCUDA && !at::hasCUDA()) GTEST_SKIP() << "no CUDA device";
  }
};

}  // namespace sinter::test
