#pragma once

#include <ATen/core/Tensor.h>

#include <mutex>
#include <unordered_map>
#include <vector>

namespace sinter::frontend {

/// True for memory that LibTorch neither owns nor can keep alive, as at::from_blob(pointer) makes it: its owner may
/// free it, or fill it anew, before a segment has run.
[[nodiscard]] bool is_lent(const c10::StorageImpl& storage);

/// Lent memory that the program has kept beyond the end of a call, as weights in a mapped file. Thread-safe.
class LentMemory {
 public:
  [[nodiscard]] bool knows(const c10::StorageImpl* storage) const;
  void note(const c10::intrusive_ptr<c10::StorageImpl>& storage);

 private:
  using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;
  mutable std::mutex mutex_;
  std::unordered_map<const c10::StorageImpl*, WeakStorage> known_;
};

/// Lent memory in one call. What its arguments lie in outlives it. Not thread-safe.
class LentInCall {
 public:
  LentInCall(LentMemory& known, std::vector<const c10::StorageImpl*> arguments)
      : known_(known), arguments_(std::move(arguments)) {}
  /// True for memory that is sure to be there, as it is, until the call ends.
  [[nodiscard]] bool lasts(const c10::StorageImpl& storage) const;
  /// Memory of which that is not sure was met.
  void note(const c10::Storage& storage) { met_.push_back(storage.getWeakStorageImpl()); }
  /// The call is over.
  void end();

 private:
  LentMemory& known_;
  std::vector<const c10::StorageImpl*> arguments_;  ///< those that are lent
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> met_;
};

}  // namespace sinter::frontend
