#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/support/report.h"
#include "frontend/tensor_memory.h"
#include "sinter/detail/flatten.h"

/// `.grad` of leaf tensors. No operator assigns it, so a recording notes what it was before and after the call, and a
/// replay assigns it once the plan has run.
namespace sinter::frontend {

/// What a plan relies on in a tensor that lies elsewhere on every call.
struct MovingTensor {
  at::ScalarType dtype{};
  c10::Device device{c10::kCPU};
  uint64_t keys = 0;  ///< dispatch keys
  std::vector<int64_t> sizes, strides;
  int64_t alignment = 1;

  static MovingTensor of(const at::Tensor& tensor);
  /// True for a tensor of that kind which nobody but its one holder can reach: it overlaps no other tensor.
  [[nodiscard]] bool fits(const c10::TensorImpl& tensor) const;
  /// True when all tensors of the other kind are of this one.
  [[nodiscard]] bool same_kind(const MovingTensor& other) const;
};

/// A weak reference to nothing.
[[nodiscard]] inline WeakTensor no_tensor() { return WeakTensor(c10::intrusive_ptr<c10::TensorImpl>()); }

/// A leaf tensor that a recorded call may have given a gradient.
struct GradientSlot {
  /// What the call does to `.grad` itself; what it writes into the tensor that lies there is a write like any other.
  enum class After : uint8_t { kept, dropped, assigned };

  std::string name;               ///< of the leaf
  std::optional<uint32_t> input;  ///< the leaf is this argument; else
  WeakTensor leaf = no_tensor();  ///< it is always this tensor
  bool defined = false;           ///< `.grad` when the call began
  /// Set where the call uses the gradient it finds: a further input of the trace. Or
  std::optional<MovingTensor> read;
  WeakTensor same = no_tensor();  ///< the gradient it finds is state, and must be this very tensor
  After after = After::kept;
  uint32_t output = 0;  ///< of the trace: what is assigned
};

/// The first difference between what two recordings of a program did to gradients.
[[nodiscard]] std::optional<std::string> gradient_difference(std::span<const GradientSlot> first,
                                                             std::span<const GradientSlot> second);

/// True when two recordings found alike gradients, as far as both looked.
[[nodiscard]] bool found_alike(std::span<const GradientSlot> first, std::span<const GradientSlot> second);

/// The arguments of a call, and after them the gradients that are inputs of its trace, in the order of the slots.
/// Pointers to gradients hold until one is assigned. With `instead`, that tensor takes the place of every gradient.
[[nodiscard]] detail::Flat with_gradients(const detail::Flat& arguments, std::span<const GradientSlot> slots,
                                          const at::Tensor* instead = nullptr);

/// Carries out what the call does to `.grad`. `results` are all outputs of the trace; the gradients among them, which
/// come last, are taken off.
void assign_gradients(std::span<const GradientSlot> slots, const detail::Flat& arguments, detail::Replay& results);

/// Guards on `.grad`. Immutable once built, thread-safe.
class GradientGuards {
 public:
  void add(std::span<const GradientSlot> slots) { slots_.assign(slots.begin(), slots.end()); }

  /// True when anything the program did depends on which tensors require gradients.
  [[nodiscard]] bool any() const { return !slots_.empty(); }
  [[nodiscard]] bool hold(const detail::Flat& arguments) const;
  /// True when a leaf is gone.
  [[nodiscard]] bool lost() const;
  void misses(const detail::Flat& arguments, std::vector<GuardMiss>& out) const;
  void describe(std::vector<std::string>& words) const;
  /// Of the gradients that are inputs.
  void alignments(std::vector<int64_t>& out) const;

 private:
  std::vector<GradientSlot> slots_;
};

}  // namespace sinter::frontend
