#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <exception>
#include <vector>

namespace sinter::frontend {

/// A storage without memory, for a tensor whose data is computed later: sizes, views and references work as on any
/// other, and whoever asks for its memory gets a c10::Error. `number` is that of its memory in the segment. Not
/// thread-safe, as storages are.
[[nodiscard]] c10::Storage stand_in_storage(c10::Device device, size_t bytes, uint32_t number);

/// Gives a stand-in its memory: everybody who holds it has an ordinary tensor from here on. `data` must be the only
/// reference to its storage, whose memory moves.
void give_memory(c10::StorageImpl& stand_in, at::Tensor data);

/// While it lives, whoever asks for the memory of a storage gets a c10::Error: what lies there is not yet what the
/// program has written. Storages may be closed several times.
class ClosedStorages {
 public:
  ClosedStorages() = default;
  ClosedStorages(const ClosedStorages&) = delete;
  ClosedStorages& operator=(const ClosedStorages&) = delete;
  ~ClosedStorages() { open(); }

  void close(const c10::Storage& storage);
  void open();

 private:
  std::vector<c10::Storage> storages_;
};

/// True for what LibTorch throws where memory was asked for that is not there yet.
[[nodiscard]] bool is_memory_missing(const std::exception& error);

}  // namespace sinter::frontend
