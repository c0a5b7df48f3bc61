#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/util/flat_hash_map.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/replay/compiled_path.h"
#include "frontend/replay/surroundings.h"
#include "frontend/torch/tensor_memory.h"
#include "frontend/trace/tensor_table.h"

namespace sinter::frontend {

/// What one call did, for those that leave the host code out: one compiled segment, memory made before it, and the
/// tensors of the program that operators were given. Holds no tensor alive but for numbers. Not thread-safe.
class CallLog {
 public:
  using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;

  /// Memory that an operator made without looking at data, from what is no tensor.
  struct Made {
    std::optional<c10::OperatorHandle> op;  ///< to be called again with these arguments; none: memory without content
    std::vector<c10::IValue> arguments;
    size_t bytes = 0;
    c10::Device device{c10::kCPU};
    WeakStorage storage;
  };
  /// An input of the segment.
  struct Input {
    const c10::StorageImpl* storage = nullptr;  ///< that `storages` keeps from being another one
    at::ScalarType dtype{};
    int64_t offset = 0;     ///< in elements
    int64_t alignment = 1;  ///< of its address, in bytes
    bool operator==(const Input&) const = default;
  };

  /// An operator is called with these.
  void look_at(c10::ArrayRef<c10::IValue> arguments);
  /// An operator has made memory at once; `results` are what it gave.
  void note_made(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments,
                 c10::ArrayRef<c10::IValue> results);
  /// The segment has run under these surroundings.
  void note_segment(std::shared_ptr<CompiledPath> path, const TensorTable& table,
                    const KernelSurroundings& surroundings);
  /// The call did what cannot be done without the host code. The first reason counts.
  void refuse(std::string reason);

  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  [[nodiscard]] const std::shared_ptr<CompiledPath>& path() const { return path_; }  ///< null where none has run
  [[nodiscard]] const std::vector<Made>& made() const { return made_; }
  [[nodiscard]] const std::vector<Input>& inputs() const { return inputs_; }
  /// Storages that were there before, and that the segment has written.
  [[nodiscard]] const std::vector<const c10::StorageImpl*>& written() const { return written_; }
  /// What the segment reads and takes for constant.
  [[nodiscard]] const std::vector<const c10::StorageImpl*>& frozen() const { return frozen_; }
  /// Where its outputs lie now, by output; expired where nobody holds one.
  [[nodiscard]] const std::vector<WeakStorage>& given() const { return given_; }
  /// The tensors that operators were given and that are still there.
  [[nodiscard]] std::vector<at::Tensor> tensors() const;

 private:
  const KernelSurroundings surroundings_ = KernelSurroundings::current();  ///< when the call began
  std::string refusal_;
  std::shared_ptr<CompiledPath> path_;
  std::vector<Made> made_;
  std::vector<Input> inputs_;
  std::vector<const c10::StorageImpl*> written_, frozen_;
  std::vector<WeakStorage> given_;
  std::vector<WeakStorage> storages_;  ///< of the inputs: their addresses are not used again while this lives
  ska::flat_hash_map<const c10::TensorImpl*, WeakTensor> seen_;
};

}  // namespace sinter::frontend
