#include "tests/runtime/fake_host.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace sinter::runtime::fake {
namespace {

constexpr size_t alignment = 64;

size_t rounded(int64_t bytes) { return (static_cast<size_t>(bytes) / alignment + 1) * alignment; }

}  // namespace

std::shared_ptr<void> Memory::allocate(int64_t bytes) {
  return {std::aligned_alloc(alignment, rounded(bytes)), [](void* memory) { std::free(memory); }};
}

std::unique_ptr<runtime::Frame> Host::make_frame(const Plan& plan) { return std::make_unique<Frame>(plan, *this); }

void* Host::current_stream(ir::Device) { return nullptr; }

void Host::parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  ++parallel_loops;
  std::vector<std::pair<int64_t, int64_t>> cut;
  for (int64_t begin = 0; begin < count; begin += grain) cut.emplace_back(begin, std::min(begin + grain, count));
  for (const auto& [begin, end] : cut) body(begin, end);
  std::lock_guard lock(mutex_);
  ranges = std::move(cut);
}

namespace {

class FakeDraws final : public runtime::Host::Draws {
 public:
  explicit FakeDraws(std::vector<std::string>& told) : told_(told) {}
  void rewind() override { told_.emplace_back("rewind"); }
  void begin_recording() override { told_.emplace_back("begin"); }
  void end_recording() override { told_.emplace_back("end"); }
  void prepare_replay() override { told_.emplace_back("replay"); }

 private:
  std::vector<std::string>& told_;
};

}  // namespace

std::unique_ptr<Host::Draws> Host::draws(ir::Device) { return std::make_unique<FakeDraws>(told); }

std::unique_ptr<Host::Recording> Host::record(ir::Device, const std::optional<PoolRequest>&) {
  throw std::logic_error("no stream to record");
}

void Host::release_pool(ir::Device, uint64_t) {}

Tensor Host::counted(std::shared_ptr<void> storage) {
  ++live_tensors;
  void* address = storage.get();
  std::shared_ptr<void> guarded(address, [this, held = std::move(storage)](void*) { --live_tensors; });
  return {std::move(guarded), static_cast<char*>(address)};
}

Tensor Host::allocate(const ir::Type& type) {
  const int64_t bytes = type.span() * ir::bytes_of(type.dtype);
  return type.device.kind == ir::Device::Kind::cpu ? counted(host_.allocate(bytes)) : allocate_device(bytes);
}

Tensor Host::allocate_device(int64_t bytes) { return counted(device_->allocate(bytes)); }

double Frame::scalar_f64(BufferId buffer) const {
  const bool wide = plan_.buffers[buffer.index].type.dtype == ir::DType::f64;
  return wide ? *as<double>(buffer) : static_cast<double>(*as<float>(buffer));
}

int64_t Frame::scalar_i64(BufferId buffer) const { return *as<int64_t>(buffer); }

void Frame::allocate(BufferId buffer) { set(buffer, host_.allocate(plan_.buffers[buffer.index].type)); }

void Frame::allocate_arena() { arena_ = host_.allocate_device(plan_.arena_bytes); }

std::shared_ptr<void> Frame::scratch(int64_t bytes) { return host_.allocate_device(bytes).storage; }

void Frame::bind(BufferId id) {
  const Buffer& buffer = plan_.buffers[id.index];
  if (buffer.kind == BufferKind::arena) return set(id, {arena_.storage, arena_.data + buffer.offset});
  const Tensor& base = get(buffer.base);
  const int64_t bytes = buffer.kind == BufferKind::view ? buffer.offset * ir::bytes_of(buffer.type.dtype) : 0;
  set(id, {base.storage, base.data + bytes});
}

void Frame::lend(BufferId buffer, void* address) { set(buffer, {nullptr, static_cast<char*>(address)}); }

void Frame::share(BufferId buffer, const runtime::Frame& other, BufferId other_buffer) {
  set(buffer, static_cast<const Frame&>(other).get(other_buffer));
}

void Frame::call(uint32_t index) {
  const ExternCall& call = plan_.calls[index];
  host_.calls.at(call.op)(*this, call);
}

}  // namespace sinter::runtime::fake
