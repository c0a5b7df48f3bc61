#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/support/report.h"
#include "frontend/capture.h"
#include "frontend/layout_guard.h"
#include "frontend/modes.h"
#include "frontend/modules.h"
#include "frontend/optimizers.h"
#include "frontend/state_guards.h"
#include "sinter/detail/flatten.h"

namespace sinter::frontend {

/// True for tensors guards can describe: strided, dense storage of their own, no view of a conjugate or a negative,
/// no wrapper of another tensor, without a tangent.
[[nodiscard]] bool is_plain(const at::Tensor& tensor);

/// Largest power of two that divides the address of the first element, up to what LibTorch's allocators promise to
/// every fresh tensor of the device or a little less: 256 bytes on CUDA, 64 on the CPU.
[[nodiscard]] int64_t alignment_of(const at::Tensor& tensor);

/// How a call fits an entry's guards.
enum class Fit : uint8_t {
  none,
  moved,  ///< all hold, but an argument lies in other memory than in every capture so far
  full,
};

/// Everything one entry relies on, as flat records on cached slots. Checked in full on every call; nothing is looked
/// up.
class Guards {
 public:
  /// Records the arguments of a call, and the modes and train flags it was made under.
  Guards(const detail::Flat& arguments, const Modes& modes, TrainFlags train_flags);

  /// Adds the state a program read. `results` are the tensors it returned: references they hold do not count, as they
  /// go away with them.
  void add_states(std::span<const StateSlot> states, std::span<const at::Tensor> results) {
    states_.add(states, results);
  }
  /// Adds that no argument lies in the memory of state, for programs that write either. After `add_states`. Gives the
  /// argument and the state for which it does not hold even now: "input 0 shares memory with fc.weight".
  [[nodiscard]] std::optional<std::string> keep_apart();
  /// Adds what the program found in `.grad` of leaf tensors. From here on, which state requires gradients matters too.
  void add_gradients(std::span<const GradientSlot> gradients) { gradients_.add(gradients); }
  /// Adds the optimizers whose steps are part of the program.
  void add_optimizers(std::shared_ptr<const OptimizerLink> optimizers) { optimizers_ = std::move(optimizers); }
  /// Adds the current CUDA device.
  void add_device(int current) { cuda_device_ = current; }

  /// Modules' train flags, as recorded.
  [[nodiscard]] const TrainFlags& train_flags() const { return train_flags_; }

  [[nodiscard]] Fit fit(const detail::Flat& arguments, const Modes& modes) const;
  /// True when nothing fails but sizes, strides and alignment of arguments; ranks are equal.
  [[nodiscard]] bool fit_but_for_sizes(const detail::Flat& arguments, const Modes& modes) const;
  /// Frees the arguments that lie in other memory than those of the first capture: a second capture has shown that
  /// the program does the same with them. Thread-safe.
  void free_moved(const detail::Flat& arguments);
  void free_all();
  /// Frees the arguments that are free in `other`, guards of the same program for other sizes.
  void free_as(const Guards& other);
  /// True when an argument that is still bound lies in the given tensor's storage.
  [[nodiscard]] bool is_bound_to(const at::Tensor& tensor) const;
  /// True when these guards can never hold again: state is gone or was replaced.
  [[nodiscard]] bool lost() const;
  /// Every guard that fails, by name.
  [[nodiscard]] std::vector<GuardMiss> misses(const detail::Flat& arguments, const Modes& modes) const;
  /// Every guard in force, in words.
  [[nodiscard]] std::vector<std::string> describe() const;
  /// Types of the arguments: "f16[1,3,224,224], i64[8]".
  [[nodiscard]] std::string signature() const;
  /// Of the inputs of the trace: the arguments, then the gradients.
  [[nodiscard]] std::vector<int64_t> alignments() const;
  [[nodiscard]] std::vector<int64_t> state_alignments() const { return states_.alignments(); }

 private:
  /// How an input lies to those before it.
  struct Sharing {
    int32_t with = -1;     ///< the first in the same storage, or -1
    int64_t distance = 0;  ///< bytes from its first element to this input's
    int32_t same = -1;     ///< the first that is this very tensor, or -1: a program can tell it from a view

    static Sharing of(const detail::Flat& arguments, size_t index);
    bool operator==(const Sharing&) const = default;
    [[nodiscard]] std::string text() const;
  };
  struct Input {
    LayoutGuard layout;
    bool requires_grad;
    bool has_hooks;
    int64_t alignment;
    Sharing sharing;
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  ///< keeps the address it is bound to from being used again
  };

  [[nodiscard]] bool rest_holds(const detail::Flat& arguments) const;
  [[nodiscard]] bool input_holds(size_t index, const detail::Flat& arguments) const;
  [[nodiscard]] bool differentiates_alike(const Input& input, const c10::TensorImpl& tensor) const;
  [[nodiscard]] bool lies_in_state(const c10::TensorImpl& tensor) const;
  /// True when what the program did may depend on which tensors require gradients.
  [[nodiscard]] bool differentiates() const { return modes_.grad_mode() || gradients_.any(); }
  [[nodiscard]] bool is_moved(size_t index, const detail::Flat& arguments) const;
  void input_misses(size_t index, const detail::Flat& arguments, std::vector<GuardMiss>& out) const;

  std::string structure_;
  Modes modes_;
  int cuda_device_ = -1;
  std::vector<Input> inputs_;
  std::unique_ptr<std::atomic<const c10::StorageImpl*>[]> bound_;  ///< by input; nullptr: free
  StateGuards states_;
  std::vector<const c10::StorageImpl*> apart_;  ///< sorted: storages that no argument may have
  TrainFlags train_flags_;
  GradientGuards gradients_;
  std::shared_ptr<const OptimizerLink> optimizers_;  ///< null: none
};

/// What differs between two structure strings: "argument 1: was 3, is 4".
[[nodiscard]] std::vector<GuardMiss> structure_differences(std::string_view was, std::string_view is);

}  // namespace sinter::frontend
