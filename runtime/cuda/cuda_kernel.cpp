#include "runtime/cuda/cuda_kernel.h"

#include <fmt/format.h>

#include <map>

#include "runtime/nvrtc.h"

namespace sinter::runtime {
namespace {

CudaKernel load(const Cubin& cubin, const std::string& name, int device) {
  const Driver& driver = Driver::get();
  const ContextScope scope(driver, driver.context_of(device));
  CUmodule module = nullptr;
  driver.check(driver.module_load(&module, cubin.bytes.data()), "cuModuleLoadData");
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

/// Cubins of this process. Never destroyed: a kernel may be built on any thread until the process ends.
BuildCache<Cubin>& built_cubins() {
  static auto& cache = *new BuildCache<Cubin>();
  return cache;
}

std::string key_of(const KernelSource& source, int sm) { return fmt::format("{}\n{}", sm, source.text); }

}  // namespace

std::optional<Cached<Cubin>> find_cubin(const KernelSource& source, int sm) {
  return built_cubins().find(key_of(source, sm));
}

Cached<Cubin> build_cubin(const KernelSource& source, int sm) {
  return built_cubins().get(key_of(source, sm), [&] {
    const CacheKey key{"cuda", nvrtc::identity(), nvrtc::options(sm), source.text};
    const auto compile = [&] { return nvrtc::compile(source, sm); };
    return std::make_shared<Cubin>(find_or_build(DiskCache::process(), key, compile));
  });
}

CudaKernel load_cubin(const std::shared_ptr<Cubin>& cubin, const std::string& name, int device) {
  static auto& mutex = *new std::mutex();
  static auto& loaded = *new std::map<std::pair<std::shared_ptr<Cubin>, int>, CudaKernel>();
  std::lock_guard lock(mutex);
  const auto key = std::make_pair(cubin, device);
  const auto found = loaded.find(key);
  if (found != loaded.end()) return found->second;
  return loaded.emplace(key, load(*cubin, name, device)).first->second;
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
