#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace sinter::frontend {

/// Keeps what storages held before a call wrote to them, so that its writes can be taken back. Not thread-safe.
class UndoLog {
 public:
  /// Copies what the storage of a tensor holds, unless that was done before.
  void keep(const at::Tensor& tensor);
  /// Writes all of it back.
  void restore();

 private:
  struct Kept {
    at::Tensor memory;  ///< all bytes of the storage
    at::Tensor copy;
  };
  std::vector<Kept> kept_;
};

}  // namespace sinter::frontend
