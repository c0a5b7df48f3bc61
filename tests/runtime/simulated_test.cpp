#include "tests/runtime/simulated_test.h"

#include <algorithm>

#include "runtime/cuda/make_executable.h"
#include "runtime/plan_executable.h"

namespace sinter::runtime::simulated_test {
namespace {

/// Every byte 255: NaN as a float, and nowhere as an address.
void poison(void* memory, size_t bytes) { std::fill_n(static_cast<unsigned char*>(memory), bytes, 0xFF); }

CUfunction load(const Driver& driver, const std::string& name) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  driver.check(driver.module_load(&module, ""), "cuModuleLoadData");
  driver.check(driver.module_function(&function, module, name.c_str()), "cuModuleGetFunction");
  return function;
}

}  // namespace

KernelSource kernel(const std::string& name, size_t params, std::function<void(const simulated::Launched&)> run) {
  simulated::define(name, {params, std::move(run)});
  KernelSource source;
  source.name = name;
  source.numel = count;
  source.block = {static_cast<uint32_t>(count), 1, 1};
  return source;
}

KernelSource affine(const std::string& name, float factor, float addend) {
  return kernel(name, 2, [=](const simulated::Launched& launched) {
    const auto* in = launched.pointer<const float>(0);
    std::transform(in, in + count, launched.pointer<float>(1), [=](float x) { return x * factor + addend; });
  });
}

Simulated::Simulated() : host(driver, poison) {
  host.calls["copy"] = [this](fake::Frame& f, const ExternCall& call) { host.copy(f, call); };
}

std::unique_ptr<Executable> Simulated::build(const ExecutableOptions& options) {
  auto plan = std::make_shared<const Plan>(b.plan);
  std::vector<CudaKernel> kernels(plan->kernels.size());
  for (const uint32_t i : launched_kernels(*plan)) kernels[i].function = load(driver, plan->kernels[i].name);
  return make_cuda_executable(std::move(plan), host, driver, std::move(kernels), options, report);
}

fake::Tensor Simulated::tensor(float value) {
  fake::Tensor made = host.allocate_device(count * static_cast<int64_t>(sizeof(float)));
  host.upload(made.data, filled(value));
  return made;
}

void Simulated::define_call(const std::string& op, const KernelSource& source) {
  const CUfunction function = load(driver, source.name);
  host.calls[op] = [=, this](fake::Frame& f, const ExternCall& call) {
    std::vector<uint64_t> values;
    for (const ir::Arg& arg : call.args) {
      values.push_back(reinterpret_cast<uint64_t>(f.data(BufferId{arg.value()->index})));
    }
    for (const BufferId result : call.results) {
      f.allocate(result);
      values.push_back(reinterpret_cast<uint64_t>(f.data(result)));
    }
    launch(driver, source, {function}, values, static_cast<CUstream>(host.current_stream({})));
  };
}

}  // namespace sinter::runtime::simulated_test
