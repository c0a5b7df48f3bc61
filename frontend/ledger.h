#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <unordered_map>
#include <vector>

#include "compiler/ir/arg.h"

namespace sinter::frontend {

/// Where a tensor's elements lie in its storage.
struct Layout {
  const c10::StorageImpl* storage = nullptr;
  at::ScalarType dtype{};
  int64_t offset = 0;  ///< in elements
  std::vector<int64_t> sizes, strides;
  bool conjugated = false, negated = false;  ///< how the tensor reads what lies there

  static Layout of(const at::Tensor& tensor);
  bool operator==(const Layout&) const = default;
  [[nodiscard]] int64_t begin_byte() const;
  [[nodiscard]] int64_t end_byte() const;  ///< one past the last byte touched; begin_byte() when empty
};

/// A part of a storage that one value stands for; views of that value are aliases of it. Inputs and state that share
/// memory each have a region of their own: that they share it is no promise for the next call.
struct Region {
  ir::ValueId value;
  Layout layout;
  bool look = false;  ///< lies in the region of an input or state: base only for the views made of it
};

/// What the bytes of a storage depend on.
struct Origin {
  bool varies = false;              ///< on inputs, a generator, another device: the next call may well find other bytes
  std::vector<ir::ValueId> leaves;  ///< while it does not vary: the contents and the state on the CPU

  void add(const Origin& other);
};

/// One storage a trace has met. The weak pointer keeps its address from being used again.
struct Memory {
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  std::vector<Region> regions;
  std::vector<Region> views;   ///< made by operators: autograd may wrap such a result in another tensor object
  bool opaque = false;         ///< some tensors over it overlap in a way the IR cannot say: it must not be written
  bool written = false;        ///< an operator wrote to the input or state that lies here
  bool refreshed = false;      ///< the program filled it behind the dispatcher's back
  bool left_device = false;    ///< CPU memory an operator filled from CUDA tensors, though it is no copy
  bool watched = false;        ///< the program may fill it behind the dispatcher's back
  bool uninitialised = false;  ///< no operator and no content has defined it yet
  uint64_t hash = 0;           ///< of its bytes after the last recorded operator that wrote it; when watched
  Origin origin;
};

/// How a tensor lies to what is known of its storage.
struct Placement {
  enum class Kind { fresh, inside, overlapping } kind = Kind::fresh;
  ir::ValueId base;        ///< inside, overlapping: the value whose bytes it shares
  int64_t offset = 0;      ///< inside: where it begins, in elements after base's first
  bool ambiguous = false;  ///< inside: several values hold these bytes, none of them preferred
};

/// The tensors and storages a trace has met. Holds them weakly: neither memory nor what eager does changes, and as
/// long as a ledger lives no address it knows is given out twice. Not thread-safe.
class TensorLedger {
 public:
  /// The value of a tensor met before, unless its storage, sizes or strides were replaced since.
  [[nodiscard]] std::optional<ir::ValueId> find(const at::Tensor& tensor) const;
  /// The storage of a tensor; null when it was not met before.
  [[nodiscard]] Memory* memory(const at::Tensor& tensor);
  [[nodiscard]] bool knows(const c10::StorageImpl* storage) const { return memories_.contains(storage); }
  /// True when an operator wrote to the input or state in a storage.
  [[nodiscard]] bool is_written(const c10::StorageImpl* storage) const;
  /// True when written memory lies under inputs or state in a way that a write to one is not seen by the others.
  [[nodiscard]] bool has_lost_writes() const;
  [[nodiscard]] auto memories() const { return std::views::values(memories_); }
  /// The same, added when it was not met before.
  Memory& memory_or_add(const at::Tensor& tensor);
  /// `preferred` values are taken as base where several hold the tensor's bytes.
  [[nodiscard]] Placement place(const at::Tensor& tensor, std::span<const ir::ValueId> preferred = {}) const;

  /// The same for a tensor that no region holds: by its distance from the lowest region of its dtype that it overlaps.
  [[nodiscard]] Placement place_across(const at::Tensor& tensor) const;

  /// The view an operator made over the same elements, by another tensor object.
  [[nodiscard]] std::optional<ir::ValueId> find_view(const at::Tensor& tensor) const;
  void add_view(const at::Tensor& tensor, ir::ValueId value);

  /// From here on the tensor is this value.
  void bind(const at::Tensor& tensor, ir::ValueId value);
  /// The value stands for the bytes of the tensor, to be aliased by others.
  void add_region(const at::Tensor& tensor, ir::ValueId value, bool look = false);
  /// Forgets which values tensors over a storage are; they are found again through its regions.
  void forget_tensors(const c10::StorageImpl* storage);

 private:
  struct Known {
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
    ir::ValueId value;
    Layout layout;
  };
  std::unordered_map<const c10::TensorImpl*, Known> tensors_;
  std::unordered_map<const c10::StorageImpl*, Memory> memories_;
};

/// A hash of a CPU storage's bytes.
[[nodiscard]] uint64_t hash_of(const c10::StorageImpl& storage);
/// A copy of what a CPU tensor over this layout holds, with the same strides. Calls no operator.
[[nodiscard]] at::Tensor copy_of(const c10::StorageImpl& storage, const Layout& layout);

}  // namespace sinter::frontend
