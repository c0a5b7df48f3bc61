#include "runtime/cuda/cuda_kernel.h"

#include <map>
#include <mutex>
#include <utility>

namespace sinter::runtime {
namespace {

CUmodule load_module(const Driver& driver, const CubinCode& code) {
  CUmodule module = nullptr;
  driver.check(driver.module_load(&module, code.data()), "cuModuleLoadData");
  return module;
}

CudaKernel kernel_of(const Driver& driver, CUmodule module, const std::string& name, int device) {
  CudaKernel kernel;
  driver.check(driver.module_function(&kernel.function, module, name.c_str()), "cuModuleGetFunction");
  const auto attribute = [&](int& value, CUfunction_attribute which) {
    driver.check(driver.function_attribute(&value, which, kernel.function), "cuFuncGetAttribute");
  };
  kernel.waits = driver.sm_of(device) >= 90;
  attribute(kernel.registers, CU_FUNC_ATTRIBUTE_NUM_REGS);
  attribute(kernel.spill_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  attribute(kernel.shared_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  return kernel;
}

/// What a module has on one device.
struct LoadedModule {
  CUmodule module = nullptr;
  std::map<std::string, CudaKernel> kernels;
};

}  // namespace

CudaKernel load_kernel(const std::shared_ptr<const CubinCode>& code, const std::string& name, int device) {
  static auto& mutex = *new std::mutex();
  static auto& loaded = *new std::map<std::pair<std::shared_ptr<const CubinCode>, int>, LoadedModule>();
  const Driver& driver = Driver::get();
  const ContextScope scope(driver, driver.context_of(device));
  std::lock_guard lock(mutex);
  auto found = loaded.find({code, device});
  if (found == loaded.end()) {
    found = loaded.emplace(std::make_pair(code, device), LoadedModule{load_module(driver, *code), {}}).first;
  }
  auto& [module, kernels] = found->second;
  const auto known = kernels.find(name);
  if (known != kernels.end()) return known->second;
  return kernels.emplace(name, kernel_of(driver, module, name, device)).first->second;
}

LaunchParams::LaunchParams(std::span<uint64_t> values) {
  if (values.size() > few_.size()) many_.resize(values.size());
  void** pointer = pointers();
  for (uint64_t& value : values) *pointer++ = &value;
}

void launch(const Driver& driver, const KernelSource& source, const CudaKernel& kernel, std::span<uint64_t> values,
            CUstream stream, LaunchOrder order) {
  LaunchParams params(values);
  CUlaunchAttribute early{};
  early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  early.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config{};
  config.gridDimX = source.grid[0];
  config.gridDimY = source.grid[1];
  config.gridDimZ = source.grid[2];
  config.blockDimX = source.block[0];
  config.blockDimY = source.block[1];
  config.blockDimZ = source.block[2];
  config.hStream = stream;
  config.attrs = &early;
  config.numAttrs = order == LaunchOrder::early && kernel.waits ? 1 : 0;
  const CUresult result = driver.launch(&config, kernel.function, params.pointers(), nullptr);
  if (result != CUDA_SUCCESS) driver.fail(result, ("launch of " + source.name).c_str());
}

}  // namespace sinter::runtime
