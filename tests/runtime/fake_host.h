#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "compiler/plan.h"
#include "runtime/host.h"

/// A Host and its frames over plain memory, for plans whose extern calls are functions of the test.
namespace sinter::runtime::fake {

/// Where tensors lie: host memory here, device memory in the GPU tests. Thread-safe.
class Memory {
 public:
  virtual ~Memory() = default;
  /// Memory that is given back when the last pointer to it goes.
  [[nodiscard]] virtual std::shared_ptr<void> allocate(int64_t bytes);
};

struct Tensor {
  std::shared_ptr<void> storage;
  char* data = nullptr;
};

class Frame;
/// An extern call: reads and binds buffers of the frame.
using Call = std::function<void(Frame&, const ExternCall&)>;

class Host : public runtime::Host {
 public:
  explicit Host(std::shared_ptr<Memory> device = std::make_shared<Memory>()) : device_(std::move(device)) {}

  std::map<std::string, Call> calls;                ///< by op
  std::atomic<int> live_tensors{0};                 ///< allocated and not given back
  std::atomic<int> parallel_loops{0};               ///< parallel_for was called
  std::vector<std::pair<int64_t, int64_t>> ranges;  ///< of the last loop
  std::vector<std::string> told;                    ///< to the generators

  [[nodiscard]] std::unique_ptr<runtime::Frame> make_frame(const Plan& plan) override;
  [[nodiscard]] void* current_stream(ir::Device device) override;
  void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) override;
  [[nodiscard]] std::unique_ptr<Recording> record(ir::Device device,
                                                  const std::optional<PoolRequest>& request) override;
  void release_pool(ir::Device device, uint64_t pool) override;
  /// Generators that only write down what they are told, into `told`.
  [[nodiscard]] std::unique_ptr<Draws> draws(ir::Device device) override;

  [[nodiscard]] Tensor allocate(const ir::Type& type);
  [[nodiscard]] Tensor allocate_device(int64_t bytes);
  [[nodiscard]] Memory& device_memory() { return *device_; }

 private:
  [[nodiscard]] Tensor counted(std::shared_ptr<void> storage);

  std::shared_ptr<Memory> device_;
  Memory host_;
  std::mutex mutex_;
};

class Frame final : public runtime::Frame {
 public:
  Frame(const Plan& plan, Host& host) : plan_(plan), host_(host), tensors_(plan.buffers.size()) {}

  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] bool is_bound(BufferId buffer) const { return tensors_[buffer.index].has_value(); }
  void set(BufferId buffer, Tensor tensor) { tensors_[buffer.index] = std::move(tensor); }
  [[nodiscard]] const Tensor& get(BufferId buffer) const { return tensors_[buffer.index].value(); }
  template <class T>
  [[nodiscard]] T* as(BufferId buffer) const {
    return static_cast<T*>(data(buffer));
  }

  [[nodiscard]] void* data(BufferId buffer) const override { return get(buffer).data; }
  [[nodiscard]] double scalar_f64(BufferId buffer) const override;
  [[nodiscard]] int64_t scalar_i64(BufferId buffer) const override;
  void allocate(BufferId buffer) override;
  void allocate_arena() override;
  [[nodiscard]] void* arena() const override { return arena_.data; }
  void release_arena() override { arena_ = {}; }
  [[nodiscard]] std::shared_ptr<void> scratch(int64_t bytes) override;
  void bind(BufferId buffer) override;
  void lend(BufferId buffer, void* address) override;
  void release(BufferId buffer) override { tensors_[buffer.index].reset(); }
  void share(BufferId buffer, const runtime::Frame& other, BufferId other_buffer) override;
  void call(uint32_t call) override;

 private:
  const Plan& plan_;
  Host& host_;
  std::vector<std::optional<Tensor>> tensors_;
  Tensor arena_;
};

}  // namespace sinter::runtime::fake
