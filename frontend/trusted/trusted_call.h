#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "frontend/replay/call_log.h"
#include "frontend/torch/modes.h"
#include "frontend/trusted/tensor_guard.h"
#include "sinter/detail/flatten.h"

namespace sinter::frontend {

/// A call that can be answered without its host code: the segment that it runs, and what has to be as it was. State is
/// held weakly. Thread-safe.
class TrustedCall {
 public:
  /// From a call that ran checked: what it was given, what it did and what it returned. Else why there is none.
  [[nodiscard]] static std::variant<std::shared_ptr<TrustedCall>, std::string> of(const detail::Flat& arguments,
                                                                                  const Modes& modes,
                                                                                  const CallLog& log,
                                                                                  const detail::Flat& result);

  /// True where both do the same for the same arguments.
  [[nodiscard]] bool does_what(const TrustedCall& other) const;
  [[nodiscard]] bool is_for(const detail::Flat& arguments, const Modes& modes) const;
  /// False where the program's tensors are no longer those it read.
  [[nodiscard]] bool state_holds() const;

  /// Answers a call that it is for, while its state holds. False where the segment failed before it had written
  /// anything. Throws what it throws after that. `replay` points into this object.
  [[nodiscard]] bool run(const detail::Flat& arguments, detail::Replay& replay) const;

 private:
  /// Where memory comes from that the segment reads, or a result lies in.
  enum class From : uint8_t { argument, state, made, output };
  struct Place {
    From from = From::argument;
    uint32_t index = 0;
    bool operator==(const Place&) const = default;
  };
  struct Input {
    Place place;
    at::ScalarType dtype{};
    int64_t offset = 0;
    bool operator==(const Input&) const = default;
  };
  /// A tensor over memory of the call, made before the results that see that memory: one of them, or what they are
  /// views of. Those of one place count the same writes.
  struct Base {
    Place place;
    Elements elements;
    int64_t writes = 0;
    bool operator==(const Base&) const = default;
  };
  struct Result {
    Place place;
    int64_t base = -1;      ///< of a result in memory of the call, whose writes count
    bool is_view = false;   ///< of its base
    bool no_grad = false;   ///< the view was made without gradients
    bool itself = false;    ///< the very tensor that the argument or the state is
    bool detached = false;  ///< does not take part in the gradients of the tensor whose memory it sees
    int64_t same_as = -1;   ///< an earlier result that is this very tensor
    Elements elements;
    bool operator==(const Result&) const = default;
  };
  struct Argument {
    TensorGuard guard;
    int64_t alignment = 1;  ///< of its first element, in bytes
    bool operator==(const Argument&) const = default;
  };
  struct State {
    WeakTensor tensor;
    const c10::StorageImpl* storage = nullptr;
    TensorGuard guard;

    [[nodiscard]] const c10::TensorImpl* impl() const { return tensor._unsafe_get_target(); }
    [[nodiscard]] bool holds() const;
  };

  class Maker;
  TrustedCall() = default;

  [[nodiscard]] bool argument_holds(size_t index, const detail::Flat& arguments) const;
  [[nodiscard]] std::vector<c10::Storage> make_memory() const;
  [[nodiscard]] const c10::Storage& storage_at(Place place, const detail::Flat& arguments,
                                               std::span<const c10::Storage> made) const;
  void count_writes(const detail::Flat& arguments) const;
  /// Memory of a run: what was made before it, and what it gave.
  struct OwnMemory {
    std::span<const c10::Storage> made;
    std::span<const at::Tensor> outputs;
    [[nodiscard]] const c10::Storage& at(Place place) const;
  };
  [[nodiscard]] std::vector<at::Tensor> make_bases(const OwnMemory& memory) const;
  [[nodiscard]] at::Tensor result_of(const Result& result, const detail::Flat& arguments, const OwnMemory& memory,
                                     std::span<const at::Tensor> bases) const;

  std::string structure_, result_structure_;
  Modes modes_;
  std::optional<c10::Device> cuda_device_;  ///< that was current
  std::vector<Argument> arguments_;
  std::vector<State> states_;
  std::vector<const c10::StorageImpl*> apart_;  ///< sorted: storages that no argument may have
  std::vector<CallLog::Made> made_;
  std::shared_ptr<CompiledPath> path_;
  std::vector<Input> inputs_;
  std::vector<Place> written_;
  std::vector<Base> bases_;
  std::vector<Result> results_;
};

}  // namespace sinter::frontend
