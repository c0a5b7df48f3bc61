#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "compiler/plan.h"
#include "compiler/support/errors.h"
#include "frontend/execute/extern_call.h"
#include "frontend/execute/product_call.h"
#include "runtime/host.h"

namespace sinter::frontend {

/// What LibTorch needs to know of one buffer.
struct BufferShape {
  BufferKind kind = BufferKind::arena;
  uint32_t index = 0;
  int64_t offset = 0;
  uint32_t base = 0;
  bool known_dtype = true;  ///< false for ir::DType::other: such buffers are bound by extern calls only
  at::ScalarType dtype{};
  c10::Device device{c10::kCPU};
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t element_bytes = 0;
  bool in_arena = false;      ///< it, or what it is a view of, lives in the arena
  bool needs_tensor = false;  ///< an extern call, another buffer or the caller reads it as a tensor
};

/// A plan in LibTorch's terms, shared by its frames. Immutable, thread-safe.
struct FrameLayout {
  FrameLayout(std::shared_ptr<const Plan> source, const std::vector<c10::IValue>& opaques);

  std::shared_ptr<const Plan> plan;
  std::vector<BufferShape> buffers;
  std::vector<std::variant<PreparedCall, ProductCall>> calls;
  std::vector<std::vector<uint32_t>> inputs_of_calls;  ///< buffers that are inputs themselves
  std::vector<std::optional<uint32_t>> inputs;         ///< the buffer of each that has one
  std::vector<uint32_t> states, arena;                 ///< buffers of these kinds
  mutable std::atomic_flag arena_was_made;             ///< by a call; the first one makes room for it
};

/// Where an input lies; its sizes and strides are those of its buffer.
struct InputMemory {
  const c10::Storage* storage = nullptr;  ///< outlives the call
  at::ScalarType dtype{};
  int64_t offset = 0;  ///< of its first element, in elements
};

/// The tensors of one call.
class TorchFrame final : public runtime::Frame {
 public:
  explicit TorchFrame(std::shared_ptr<const FrameLayout> layout);

  /// Binds inputs, which become tensors where an operator asks for them, and state. Both outlive the call.
  void bind_arguments(std::span<const InputMemory> inputs, std::span<const at::Tensor> states);
  /// The same, one by one, for a call that begins before all are there; each is bound again with all the others.
  void bind_states(std::span<const at::Tensor> states);
  void bind_input(uint32_t index, const InputMemory& memory);
  /// Drops every tensor.
  void clear();
  /// The tensor of a bound buffer.
  [[nodiscard]] const at::Tensor& tensor(BufferId buffer);

  [[nodiscard]] void* data(BufferId buffer) const override { return data_[buffer.index]; }
  [[nodiscard]] double scalar_f64(BufferId buffer) const override;
  [[nodiscard]] int64_t scalar_i64(BufferId buffer) const override;
  void allocate(BufferId buffer) override;
  void allocate_arena() override;
  [[nodiscard]] void* arena() const override { return arena_data_; }
  void release_arena() override;
  [[nodiscard]] std::shared_ptr<void> scratch(int64_t bytes) override;
  void bind(BufferId buffer) override;
  void lend(BufferId buffer, void* address) override;
  void release(BufferId buffer) override;
  void share(BufferId buffer, const Frame& other, BufferId other_buffer) override;
  void call(uint32_t call) override;
  void begin_writes() override { writing_ = true; }
  /// True once memory that was there before the call is being written.
  [[nodiscard]] bool writing() const { return writing_; }

 private:
  [[nodiscard]] at::Tensor bytes_on_device(int64_t bytes) const;
  void make_input(uint32_t buffer) const;
  void set(uint32_t buffer, at::Tensor tensor);
  void set_result(const ExternCall& call, size_t position, const at::Tensor& tensor);
  [[nodiscard]] bool is_view_of_operand(const ExternCall& call, const at::Tensor& result) const;
  [[nodiscard]] at::Tensor over_arena(const BufferShape& shape, void* data) const;
  void set_address(uint32_t input, const InputMemory& memory);

  std::shared_ptr<const FrameLayout> layout_;
  mutable std::vector<at::Tensor> tensors_;
  std::vector<void*> data_;
  std::vector<InputMemory> memories_;  ///< by input
  at::Tensor arena_;
  void* arena_data_ = nullptr;
  bool writing_ = false;
  torch::jit::Stack stack_;
};

}  // namespace sinter::frontend
