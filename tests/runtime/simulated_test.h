#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/executable.h"
#include "tests/runtime/gpu_host.h"
#include "tests/runtime/plan_builder.h"
#include "tests/runtime/simulated_driver.h"

namespace sinter::runtime::simulated_test {

using fake::at;
using fake::PlanBuilder;
using Values = std::vector<float>;

constexpr int64_t count = 20;

[[nodiscard]] inline Values filled(float value) { return Values(static_cast<size_t>(count), value); }

/// A kernel over all elements, as the simulated device runs it and as a plan names it.
[[nodiscard]] KernelSource kernel(const std::string& name, size_t params,
                                  std::function<void(const simulated::Launched&)> run);

/// out[i] = in[i] * factor + addend.
[[nodiscard]] KernelSource affine(const std::string& name, float factor, float addend);

/// A plan, built step by step, and a host for it on the simulated device. Memory that is given back is NaN.
struct Simulated : testing::Test {
  Simulated();

  [[nodiscard]] std::unique_ptr<Executable> build(const ExecutableOptions& options = {.graphs = true});
  [[nodiscard]] std::unique_ptr<fake::Frame> frame() { return std::make_unique<fake::Frame>(b.plan, host); }
  /// A tensor of `count` equal elements.
  [[nodiscard]] fake::Tensor tensor(float value);
  /// A call's frame that holds such a tensor.
  [[nodiscard]] std::unique_ptr<fake::Frame> frame_with(BufferId input, float value) {
    auto f = frame();
    f->set(input, tensor(value));
    return f;
  }
  [[nodiscard]] Values read(const fake::Frame& f, BufferId buffer) { return host.download(f.data(buffer), count); }
  /// An extern call that launches a kernel of a library's own on its arguments, and last on its result: a new tensor,
  /// or none where it has no results.
  void define_call(const std::string& op, const KernelSource& source);

  const Driver& driver = simulated::driver();
  ContextScope scope{driver, driver.context_of(0)};
  fake::GpuHost host;
  PlanBuilder b{Backend::cuda};
  EntryReport report;
};

}  // namespace sinter::runtime::simulated_test
