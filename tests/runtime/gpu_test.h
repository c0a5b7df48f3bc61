#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/executable.h"
#include "tests/runtime/gpu_host.h"
#include "tests/runtime/plan_builder.h"

namespace sinter::runtime::gpu_test {

using fake::at;
using fake::PlanBuilder;
using Values = std::vector<float>;

constexpr int64_t count = 1000;

/// A kernel of `blocks` blocks of 128 threads.
inline KernelSource kernel_of(std::string name, unsigned blocks, std::string text) {
  KernelSource source;
  source.name = std::move(name);
  source.numel = count;
  source.grid = {blocks, 1, 1};
  source.block = {128, 1, 1};
  source.text = std::move(text);
  return source;
}

/// out[i] = in[i] * factor + addend; the addend is a parameter where `scalar` is set.
inline KernelSource affine(const std::string& name, int factor, int addend, bool scalar = false) {
  std::string text = fmt::format(
      "extern \"C\" __global__ void {}(const float* in, float* out{}) {{\n"
      "  const int i = blockIdx.x * 128 + threadIdx.x;\n"
      "  if (i < {}) out[i] = in[i] * {} + {};\n}}\n",
      name, scalar ? ", double c" : "", count, factor, scalar ? "(float)c" : std::to_string(addend));
  return kernel_of(name, 8, std::move(text));
}

/// Keeps a stream busy for about half a second, then copies `in` to `out`. What is to go wrong meanwhile goes wrong.
inline KernelSource slow_copy() {
  std::string text = fmt::format(
      "extern \"C\" __global__ void slow_copy(const float* in, float* out) {{\n"
      "  const long long start = clock64();\n"
      "  while (clock64() - start < 1000000000ll) {{}}\n"
      "  const int i = blockIdx.x * 128 + threadIdx.x;\n"
      "  if (i < {}) out[i] = in[i];\n}}\n",
      count);
  return kernel_of("slow_copy", 8, std::move(text));
}

/// out[i] = 2 in[i], four elements at a time from addresses that are multiples of 16.
inline KernelSource twice_by_vectors() {
  std::string text = fmt::format(
      "struct alignas(16) four {{ float v[4]; }};\n"
      "extern \"C\" __global__ void twice_by_vectors(const float* in, float* out) {{\n"
      "  const int i = blockIdx.x * 128 + threadIdx.x;\n"
      "  if (4 * i >= {}) return;\n"
      "  four x = reinterpret_cast<const four*>(in)[i];\n"
      "  for (int k = 0; k < 4; ++k) x.v[k] *= 2;\n"
      "  reinterpret_cast<four*>(out)[i] = x;\n}}\n",
      count);
  KernelSource source = kernel_of("twice_by_vectors", 2, std::move(text));
  source.params = {{16, false}, {16, true}};
  return source;
}

inline Values filled(float value) { return Values(static_cast<size_t>(count), value); }

/// A plan, built step by step, and a host for it on the first GPU.
struct Gpu : testing::Test {
  void SetUp() override {
    driver = Driver::find();
    if (driver == nullptr) GTEST_SKIP() << "needs a GPU";
    scope = std::make_unique<ContextScope>(*driver, driver->context_of(0));
    host = std::make_unique<fake::GpuHost>(*driver);
    host->calls["copy"] = [this](fake::Frame& f, const ExternCall& call) { host->copy(f, call); };
  }

  std::unique_ptr<Executable> build(bool graphs) {
    return Executable::build(std::make_shared<Plan>(b.plan), *host, {.graphs = graphs}, report);
  }
  std::unique_ptr<fake::Frame> frame(BufferId input, float value) const {
    auto f = std::make_unique<fake::Frame>(b.plan, *host);
    f->allocate(input);
    host->upload(f->data(input), filled(value));
    return f;
  }
  Values read(const fake::Frame& f, BufferId buffer, int64_t n = count) const {
    return host->download(f.data(buffer), n);
  }

  const Driver* driver = nullptr;
  std::unique_ptr<ContextScope> scope;
  std::unique_ptr<fake::GpuHost> host;
  PlanBuilder b{Backend::cuda};
  EntryReport report;
};

}  // namespace sinter::runtime::gpu_test
