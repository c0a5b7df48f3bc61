#include "bench/measure/environment.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <torch/version.h>

#include <fstream>
#include <string>

#include "bench/measure/cuda.h"

namespace sinter::bench {
namespace {

/// The processor's name; empty where the system does not say.
std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (const size_t colon = line.find(": "); line.starts_with("model name") && colon != std::string::npos)
      return line.substr(colon + 2);
  }
  return "";
}

}  // namespace

nlohmann::json environment(at::Device device) {
  nlohmann::json info = {
      {"torch", TORCH_VERSION},
      {"threads", at::get_num_threads()},
      {"tf32_matmul", at::globalContext().float32MatmulPrecision() != at::Float32MatmulPrecision::HIGHEST},
      {"tf32_cudnn", at::globalContext().allowTF32CuDNN()},
      {"cudnn_benchmark", at::globalContext().benchmarkCuDNN()},
      {"device", device.str()},
      {"cpu", cpu_name()}};
  if (device.is_cuda()) cuda::describe(device.index(), info);
  return info;
}

}  // namespace sinter::bench
