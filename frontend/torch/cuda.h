#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "compiler/support/device_info.h"
#include "runtime/host.h"

/// What Sinter asks of LibTorch's CUDA part, all of it. frontend/cuda/ answers; where LibTorch was built without CUDA,
/// frontend/without_cuda/ does: there are no devices then, and what needs one throws InternalError. Thread-safe.
namespace sinter::frontend::cuda {

/// 0 where there is no driver or no device.
[[nodiscard]] int device_count();
/// Devices that this process has begun to use.
[[nodiscard]] std::vector<c10::DeviceIndex> devices_in_use();
/// The calling thread's.
[[nodiscard]] c10::DeviceIndex current_device();
[[nodiscard]] c10::StreamId current_stream_id(c10::DeviceIndex device);
/// A CUstream.
[[nodiscard]] void* current_stream(c10::DeviceIndex device);
[[nodiscard]] DeviceInfo device_info(c10::DeviceIndex device);

/// Uninitialised, on the current stream.
[[nodiscard]] at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides, at::ScalarType dtype,
                                       c10::Device device);

/// For an allocation of many bytes that is to come again and again. Where LibTorch's allocator keeps no free block as
/// large, what it keeps goes back to the driver, which else would hold both; waits for the device then. Does nothing
/// while a stream is recorded.
void make_room(c10::DeviceIndex device, int64_t bytes);

/// See runtime::Host::record and release_pool.
[[nodiscard]] std::unique_ptr<runtime::Host::Recording> record(
    c10::DeviceIndex device, const std::optional<runtime::Host::PoolRequest>& request);
void release_pool(c10::DeviceIndex device, uint64_t pool);

/// How far a generator of CUDA has drawn, also while its stream is recorded; nothing for generators of other devices.
/// The caller holds the generator's mutex.
[[nodiscard]] std::optional<uint64_t> drawn_by(const at::Generator& generator);
void rewind(const at::Generator& generator, uint64_t drawn);

/// The generators of a device that a recorded plan draws from: the default one, and those its calls name (`named`,
/// of any device). Follows LibTorch's protocol for CUDA Graphs (ATen/cuda/CUDAGeneratorImpl.h, "CUDA Graph-safe RNG
/// states"): recorded kernels read seed and offset from memory of the generator, which is set before every replay, so
/// that a replay draws what the same operators would have drawn. Not to be made while a stream is recorded.
[[nodiscard]] std::unique_ptr<runtime::Host::Draws> make_graph_generators(c10::DeviceIndex device,
                                                                          const std::vector<at::Generator>& named);

}  // namespace sinter::frontend::cuda
