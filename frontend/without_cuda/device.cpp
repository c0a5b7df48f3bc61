#include "compiler/support/errors.h"
#include "frontend/torch/cuda.h"

namespace sinter::frontend::cuda {
namespace {

[[noreturn]] void absent() { throw InternalError("cuda", "this LibTorch was built without CUDA"); }

}  // namespace

int device_count() { return 0; }
std::vector<c10::DeviceIndex> devices_in_use() { return {}; }
c10::DeviceIndex current_device() { absent(); }
c10::StreamId current_stream_id(c10::DeviceIndex /*device*/) { absent(); }
void* current_stream(c10::DeviceIndex /*device*/) { absent(); }
DeviceInfo device_info(c10::DeviceIndex /*device*/) { absent(); }

at::Tensor empty_strided(c10::IntArrayRef /*sizes*/, c10::IntArrayRef /*strides*/, at::ScalarType /*dtype*/,
                         c10::Device /*device*/) {
  absent();
}

void make_room(c10::DeviceIndex /*device*/, int64_t /*bytes*/) { absent(); }
std::unique_ptr<runtime::Host::Recording> record(c10::DeviceIndex /*device*/,
                                                 const std::optional<runtime::Host::PoolRequest>& /*request*/) {
  absent();
}
void release_pool(c10::DeviceIndex /*device*/, uint64_t /*pool*/) { absent(); }

std::optional<uint64_t> drawn_by(const at::Generator& /*generator*/) { return std::nullopt; }
void rewind(const at::Generator& /*generator*/, uint64_t /*drawn*/) { absent(); }

std::unique_ptr<runtime::Host::Draws> make_graph_generators(c10::DeviceIndex /*device*/,
                                                            const std::vector<at::Generator>& /*named*/) {
  absent();
}

}  // namespace sinter::frontend::cuda
