#include <ATen/Context.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/EmptyTensor.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include "frontend/torch/cuda.h"

namespace sinter::frontend::cuda {

int device_count() { return c10::cuda::device_count(); }

std::vector<c10::DeviceIndex> devices_in_use() {
  std::vector<c10::DeviceIndex> devices;
  for (c10::DeviceIndex device = 0; device < c10::cuda::device_count(); ++device) {
    if (c10::cuda::hasPrimaryContext(device)) devices.push_back(device);
  }
  return devices;
}

c10::DeviceIndex current_device() { return c10::cuda::current_device(); }

c10::StreamId current_stream_id(c10::DeviceIndex device) { return c10::cuda::getCurrentCUDAStream(device).id(); }

void* current_stream(c10::DeviceIndex device) { return c10::cuda::getCurrentCUDAStream(device).stream(); }

DeviceInfo device_info(c10::DeviceIndex device) {
  const auto* properties = at::cuda::getDeviceProperties(device);
  // cuDNN's tensor-core convolutions work channels-last; on f32 operands they are TF32.
  const bool cudnn = at::globalContext().userEnabledCuDNN() && properties->major >= 7;
  return {.backend = Backend::cuda,
          .sm = properties->major * 10 + properties->minor,
          .multiprocessors = properties->multiProcessorCount,
          .channels_last_half = cudnn,
          .channels_last_float = cudnn && properties->major >= 8 && at::globalContext().allowTF32CuDNN()};
}

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides, at::ScalarType dtype, c10::Device device) {
  return at::Tensor(at::detail::empty_strided_cuda(sizes, strides, dtype, device));
}

std::optional<uint64_t> drawn_by(const at::Generator& generator) {
  const auto* impl = dynamic_cast<const at::CUDAGeneratorImpl*>(generator.unsafeGetGeneratorImpl());
  if (impl == nullptr) return std::nullopt;
  return impl->philox_offset_per_thread();
}

void rewind(const at::Generator& generator, uint64_t drawn) {
  generator.get<at::CUDAGeneratorImpl>()->set_philox_offset_per_thread(drawn);
}

}  // namespace sinter::frontend::cuda
